#include "keeper/files_notes.h"

#include "base/array.h"
#include "base/error.h"
#include "base/text.h"
#include "inside/protocol.h"
#include "keeper/files_tree.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const reasons[] = {
    [WHY_SPECIAL] = "is neither a file nor a link nor a directory",
    [WHY_CHANGED] = "changed while it was read",
    [WHY_SETID] = "came without its set-user-ID, set-group-ID or sticky bit",
    [WHY_IN_THE_WAY] = "something of another kind has its name there",
    [WHY_DEEP] = "is nested too deep",
    [WHY_NAME] = "has a name that would lead elsewhere",
    [WHY_TWIN] = "is another name of a file that did not come",
};

static void add(struct files_copy *copy, char *line)
{
    if (copy->told++ < FILES_TOLD_MAX)
        strings_take(&copy->notes, line);
    else
        free(line);
}

bool files_note_add(struct files_copy *copy, const struct files_note *note, const char *path)
{
    copy->lost += note->why != WHY_SETID;
    if (note->why == WHY_MORE && note->number > 0) {
        copy->told += (uint32_t)note->number - 1U;
        add(copy, text_format("and %d more", note->number));
        return true;
    }
    if (note->why == WHY_FAILED && note->number > 0 && note->number < 4096) {
        const char *why = strerrordesc_np(note->number);

        add(copy, text_format("%s: %s", path, why ? why : "unknown error"));
        return true;
    }
    if (note->why >= ARRAY_LEN(reasons) || !reasons[note->why])
        return false;
    add(copy, text_format("%s: %s", path, reasons[note->why]));
    return true;
}

void files_notes_close(struct files_copy *copy)
{
    if (copy->told > copy->notes.len && copy->notes.len == FILES_TOLD_MAX)
        strings_take(&copy->notes, text_format("and %" PRIu64 " more", copy->told - FILES_TOLD_MAX));
}

void files_copy_free(struct files_copy *copy)
{
    strings_free(&copy->notes);
    *copy = FILES_COPY_NONE;
}
