#pragma once

/* How a session on the files of a running sandbox is begun: cove-files is started inside, as any command is,
 * and what is left of it outside are two descriptors (keeper/files.h takes them). */

struct error;

/* `keeper` is a connection to the sandbox's keeper, which has to stay open as long as the session.  Gives the
 * end that its standard input is read from and the one that its standard output is written to, both
 * close-on-exec, both the caller's.  The program ends when the first is closed.  `step`: what the session is to
 * be called as a step of the sandbox; NULL: it is none.  Relative paths count from the workspace. */
int files_session_start(int keeper, const char *const *step, int *out_to, int *out_from, struct error *err);

/* After both were closed: waits until the step is over and recorded, for what comes next. */
void files_session_end(int keeper);

/* The program as a memfd that nobody can change, for START_PROGRAM.  A new one each time: inside it belongs to
 * whoever runs it, who may take his own right to execute it away. */
int files_session_program(struct error *err);
