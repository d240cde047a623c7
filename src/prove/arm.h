#pragma once

/* One run of the prober: in a sandbox, or, as the control, on the host as the owner.  While it lasts the prober
 * holds what it got, and the host looks at it. */

#include "base/array.h"
#include "base/text.h"
#include "prove/canaries.h"

#include <stdbool.h>
#include <sys/types.h>

struct error;
struct host;
struct plan;

/* Where the prober is inside. */
#define PROBER_INSIDE "/run/cove-prober"

struct arm {
    bool inside;
    struct canaries canaries;
    pid_t process;        /* our child: who keeps the sandbox, or the prober itself */
    pid_t prober, init;   /* as the host numbers them; the second is what the prober was shown as PID 1 */
    int go, output, news; /* pipes to the prober, from it, and from whoever keeps it */
    struct strings fds;   /* its descriptors before it did anything: "0", "1" ... */
    struct text said;
};

#define ARM_NONE                                                                                               \
    ((struct arm){ .canaries = CANARIES_NONE,                                                                  \
                   .process = -1,                                                                              \
                   .prober = -1,                                                                               \
                   .init = -1,                                                                                 \
                   .go = -1,                                                                                   \
                   .output = -1,                                                                               \
                   .news = -1 })

/* Both return when the prober has tried everything; canaries were made before.  `plan` is one whose command is
 * the prober with its words; `words` are those words, from argv[0] on. */
int arm_inside(struct arm *arm, const struct host *host, struct plan *plan, struct error *err);
int arm_outside(struct arm *arm, int prober, const struct strings *words, struct error *err);

/* Lets it end, and waits for that.  -1 if the sandbox did not last until then. */
int arm_end(struct arm *arm, struct error *err);

/* Ends whatever is left, canaries too.  Accepts ARM_NONE. */
void arm_free(struct arm *arm);
