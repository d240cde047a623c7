#pragma once

struct error;

/* Enters a new network namespace with loopback up and nothing else. */
int network_make(struct error *err);
