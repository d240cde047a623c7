#pragma once

struct context;
struct error;

/* `cove policy explain URL...`, when the policy was read: 0, or 1 if one of them is refused. */
int policy_explain(const struct context *context, struct error *err);
