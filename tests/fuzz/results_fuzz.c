/* The results of `cove explore`, which are read again by who goes on.  Each line that is taken must come back
 * from its own JSON the same, and holds no byte that could move a cursor. */

#include "base/error.h"
#include "base/text.h"
#include "explore/ranking.h"
#include "explore/results.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inert(const char *string)
{
    for (; string && *string; string++)
        if ((unsigned char)*string < ' ' || *string == 0x7f)
            abort();
}

static void check(const struct tried *tried)
{
    autotext struct text json = TEXT_NONE, json_again = TEXT_NONE;
    autotried struct tried again = TRIED_NONE;
    struct error err = { 0 };

    check_inert(tried->error);
    check_inert(tried->id);
    for (size_t i = 0; i < tried->output.len; i++)
        check_inert(tried->output.items[i]);
    tried_json(tried, &json);
    if (json.len >
        1 << 20) /* made inert it can be longer than what was read, and past the bound of the reader */
        return;
    if (tried_read(json.data, json.len, "line", &again, &err) < 0)
        abort();
    tried_json(&again, &json_again);
    if (strcmp(json.data, json_again.data) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoresults struct results results = RESULTS_NONE;
    struct error err = { 0 };

    if (results_parse((const char *)data, size, "file", &results, &err) < 0)
        return 0;
    if (results.whole > size)
        abort();
    for (size_t i = 0; i < results.len; i++)
        check(&results.items[i]);
    free(ranking_sort(&results));
    return 0;
}
