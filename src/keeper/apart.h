#pragma once

/* For a process that the keeper forks and that is to outlive or outwork it: gives up the terminal's
 * signals and all descriptors but these, which get the numbers from 0 on (of one that is -1
 * it stays free).  Holding a pipe of the user's open
 * would make whoever reads it wait for us. */
void apart(const char *name, int *fds[], int count);

/* Closes all descriptors but 0, 1, 2 and these; one that is -1 is none. */
void apart_close_others(const int *fds, int count);
