/* What somebody sends to a keeper: any bytes, any number of descriptors; and the words of a command, any file.
 * A whole message of our version or an error, and no descriptor left open. */
#include "keeper/control.h"

#include "init/wire.h"
#include "keeper/words.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int lowest_free(void)
{
    int fd = dup(0);

    close(fd);
    return fd;
}

static void try_message(const uint8_t *data, size_t size, size_t fds_sent)
{
    int ends[2], fds[PROTOCOL_FDS_MAX], sent[PROTOCOL_FDS_MAX];
    struct control message;
    struct error err;
    size_t count;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends) < 0)
        return;
    for (size_t i = 0; i < PROTOCOL_FDS_MAX; i++)
        sent[i] = ends[1];
    (void)wire_put(ends[1], data, size, sent, fds_sent);
    if (control_receive(ends[0], &message, fds, &count, &err) == WIRE_MESSAGE) {
        if (size != sizeof message || message.version != CONTROL_VERSION ||
            strlen(message.user) >= sizeof message.user)
            abort();
        for (size_t i = 0; i < count; i++)
            close(fds[i]);
    } else if (count != 0) {
        abort();
    }
    close(ends[0]);
    close(ends[1]);
}

static void try_words(const uint8_t *data, size_t size)
{
    enum { MOST = 4096 };
    uint32_t counts[2] = { data[0] % 8, data[1] % 8 };
    autowords struct words words = WORDS_NONE;
    struct error err;
    int fd = memfd_create("words", 0);

    if (fd < 0 || write(fd, data + 2, size - 2) != (ssize_t)(size - 2))
        abort();
    if (words_read(fd, counts, MOST, &words, &err) == 0 &&
        (words.argv.len != counts[0] || words.envp.len != counts[1] || !words.cwd || size - 2 > MOST))
        abort();
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int before = lowest_free();

    if (size < 3)
        return 0;
    if (data[0] % 2)
        try_words(data + 1, size - 1);
    else
        try_message(data + 1, size - 1, data[0] / 2 % (PROTOCOL_FDS_MAX + 1));
    if (lowest_free() != before)
        abort();
    return 0;
}
