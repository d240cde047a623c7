/* The file of a frozen layer.  What is taken must come back from its own JSON the same. */

#include "base/error.h"
#include "base/text.h"
#include "store/layerfile.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autolayerinfo struct layer_info layer = LAYER_INFO_NONE, again = LAYER_INFO_NONE;
    autotext struct text json = TEXT_NONE, json_again = TEXT_NONE;
    struct error err = { 0 };

    if (layerfile_read((const char *)data, size, "file", &layer, &err) < 0)
        return 0;
    if ((*layer.parent && !store_is_id(layer.parent)) || !store_is_id(layer.sandbox))
        abort();
    layerfile_write(&layer, &json);
    if (layerfile_read(json.data, json.len, "file", &again, &err) < 0)
        abort();
    layerfile_write(&again, &json_again);
    if (strcmp(json.data, json_again.data) != 0)
        abort();
    return 0;
}
