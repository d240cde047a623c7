#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sandboxed program writes to its pty, made safe for the terminal of the user.
 *
 * A terminal is more than a screen: it can be told to set the clipboard, to start a print job or a
 * file transfer, to read files, and to type text into whatever reads its keyboard next.  The
 * filter removes what acts beyond the screen and passes everything else byte by byte, however
 * the stream is cut.  The rules are tables in termfilter.c; in short:
 *
 *   OSC    only 4, 5, 10 to 19, 104, 105, 110 to 119 (colours, also asked for: vim, fzf) and 8 (links
 *          with http, https, mailto, file).  So no title, directory, clipboard, notification, upload.
 *   DCS    only sixel images.  APC, PM, SOS and the title of screen and tmux (ESC k) go.
 *   CSI    all but: window operations (the size may be asked for), printing, checksums and
 *          reports of the screen, changes of the terminal's own language.
 *   C0     all but ENQ (answerback) and CAN (starts file transfers).
 *   C1     none, neither as one byte nor as UTF-8.  On a UTF-8 terminal bytes that are no UTF-8
 *          become U+FFFD, which is what it would have shown; on others 0x80 to 0x9f become "?".
 *
 * A sequence goes out whole or not at all, so our idea of where it ends is the terminal's too. */
enum {
    TERMFILTER_HELD = 4096, /* longest sequence that is passed */
    TERMFILTER_END_MAX = 512,
};

struct termfilter {
    bool utf8;
    int state;
    bool escaped;                  /* in a string: the last byte was ESC */
    bool bell_ends;                /* in a string that is dropped */
    bool bad;                      /* the sequence holds what must not pass */
    unsigned char need, low, high; /* of a UTF-8 sequence: bytes to come, range of the next */
    unsigned char held[TERMFILTER_HELD];
    size_t held_len;
    uint32_t modes;   /* switched on and to be switched off at the end, see termfilter.c */
    uint32_t colours; /* changed; bit n: the one that OSC n sets */
    uint32_t pushed;  /* key encodings of the kitty keyboard that were not popped */
    bool look;        /* later text may look different: colours, character sets */
    bool link;        /* later text may be part of a link */
    bool region;      /* a part of the screen scrolls by itself */
    bool insert;      /* text pushes other text away */
    unsigned asked;   /* requests that make the terminal answer */
    bool midline;     /* the last line has no end */
};

void termfilter_start(struct termfilter *filter, bool utf8);

/* Gives the length of what it put to `to`: at most 3 * len + TERMFILTER_HELD. */
size_t termfilter_run(struct termfilter *filter, const unsigned char *from, size_t len, unsigned char *to);

/* The program is gone: what puts the terminal back so that it is quiet (mouse and focus reports,
 * key encodings, alternate screen, colours) and shows what is written next, our own summary, as it is.  At most
 * TERMFILTER_END_MAX bytes. */
size_t termfilter_end(struct termfilter *filter, unsigned char *to);
