#include "explore/admit.h"

#include <stdlib.h>
#include <string.h>

uint64_t admit_need(const struct admission *admission)
{
    if (admission->limit_kib)
        return admission->limit_kib;
    return admission->seen_kib ? admission->seen_kib : ADMIT_GUESS_KIB;
}

/* Two bounds: those that run may not have taken yet what they will, so it counts how many fit into what was
 * free at first; and somebody else may have taken something since, so one more must fit into what is free now.
 */
bool admit_one_more(const struct admission *admission, uint64_t free_kib, size_t running)
{
    uint64_t need = admit_need(admission);

    return !running || (need <= free_kib && admission->first_kib / need > running);
}

uint64_t admit_read(const char *meminfo)
{
    static const char key[] = "MemAvailable:";
    const char *found = strstr(meminfo, key);

    return found ? strtoull(found + strlen(key), NULL, 10) : UINT64_MAX;
}
