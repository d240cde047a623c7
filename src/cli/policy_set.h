#pragma once

struct context;
struct error;

/* `cove policy set SANDBOX`: it has the network that a sandbox would have that is made now. */
int policy_set(struct context *context, struct error *err);
