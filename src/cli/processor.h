#pragma once

/* libcrypto asks what the processor can do when there is much to hash, and not at the start. */
void processor_ask_late(void);
