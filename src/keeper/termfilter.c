#include "keeper/termfilter.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    ENQ = 0x05,
    BEL = 0x07,
    SHIFT_OUT = 0x0e,
    CAN = 0x18,
    SUB = 0x1a,
    ESC = 0x1b,
    DEL = 0x7f,
};

enum state {
    GROUND,
    UTF8,   /* inside one character */
    ESCAPE, /* after ESC */
    MIDDLE, /* after ESC and intermediate bytes */
    CSI,
    OSC,
    PALETTE, /* ESC ] P of the Linux console: seven digits and no end mark */
    DCS,     /* before its final byte */
    SIXEL,
    DROPPED, /* a string of which nothing is passed */
};

/* Where output goes; one per call, so that the state machine's functions stay short. */
struct out {
    unsigned char *at;
};

static void put(struct out *out, const void *bytes, size_t len)
{
    memcpy(out->at, bytes, len);
    out->at += len;
}

static void put_text(struct out *out, const char *text)
{
    put(out, text, strlen(text));
}

static void put_byte(struct out *out, unsigned char byte)
{
    *out->at++ = byte;
}

static void put_wrong_byte(const struct termfilter *filter, struct out *out)
{
    if (filter->utf8)
        put(out, "\xef\xbf\xbd", 3);
    else
        put_byte(out, '?');
}

static void hold(struct termfilter *filter, unsigned char byte)
{
    if (filter->held_len < sizeof filter->held)
        filter->held[filter->held_len++] = byte;
    else
        filter->bad = true;
}

static void enter(struct termfilter *filter, enum state state)
{
    filter->state = state;
    filter->escaped = false;
    if (state == GROUND || state == ESCAPE) {
        filter->held_len = 0;
        filter->bad = false;
    }
    if (state == ESCAPE)
        hold(filter, ESC);
}

static void pass_held(struct termfilter *filter, struct out *out)
{
    put(out, filter->held, filter->held_len);
    enter(filter, GROUND);
}

/* --- CSI --- */

struct csi {
    unsigned char final, private, middle; /* 0: none */
    unsigned numbers[16];
    size_t count;
};

/* Parameters beyond the sixteenth do not change what we decide, except for modes: there the
 * sequence is dropped. */
static void parse_csi(const struct termfilter *filter, struct csi *csi)
{
    size_t at = 2, last = filter->held_len - 1;
    unsigned number = 0;

    memset(csi, 0, sizeof *csi);
    csi->final = filter->held[last];
    if (at < last && filter->held[at] >= '<' && filter->held[at] <= '?')
        csi->private = filter->held[at++];
    for (; at <= last; at++) {
        unsigned char byte = filter->held[at];

        if (byte >= '0' && byte <= '9') {
            number = number > 100000 ? number : number * 10 + (byte - '0');
            continue;
        }
        if (byte < '0')
            csi->middle = byte;
        if (csi->count < ARRAY_LEN(csi->numbers))
            csi->numbers[csi->count] = number;
        csi->count++;
        number = 0;
    }
}

typedef bool csi_rule(struct termfilter *filter, const struct csi *csi);

static bool never(struct termfilter *filter, const struct csi *csi)
{
    (void)filter, (void)csi;
    return false;
}

/* The terminal answers with numbers or a fixed text. */
static bool asks(struct termfilter *filter, const struct csi *csi)
{
    (void)csi;
    filter->asked++;
    return true;
}

/* Of the window only its size may be asked for: in pixels, of one cell, in cells. */
static bool window(struct termfilter *filter, const struct csi *csi)
{
    if (csi->private || csi->count != 1)
        return false;
    if (csi->numbers[0] != 14 && csi->numbers[0] != 16 && csi->numbers[0] != 18)
        return false;
    return asks(filter, csi);
}

/* Modes that a program must not leave on.  `exact`: switching it off again is not harmless, so
 * it is done only if the program did not do it. */
static const struct mode {
    unsigned number;
    bool exact, off_is_on; /* off_is_on: the mode is on by nature, and a program switches it off */
} modes[] = {
    { 1, true, false },  /* cursor keys send other codes */
    { 5, true, false },  /* black on white */
    { 6, true, false },  /* lines are counted from the scrolling part */
    { 7, true, true },   /* long lines go on in the next */
    { 69, true, false }, /* left and right margins */
    { 9, false, false }, /* mouse: presses */
    { 25, true, true },  /* the cursor is seen */
    { 47, true, false }, /* alternate screen, three ways */
    { 1047, true, false },  { 1049, true, false },
    { 1000, false, false }, /* mouse: presses and releases, highlights, motion ... */
    { 1001, false, false }, { 1002, false, false },
    { 1003, false, false }, { 1004, false, false }, /* focus */
    { 1005, false, false },                         /* ... and how it is written */
    { 1006, false, false }, { 1015, false, false },
    { 1016, false, false }, { 2004, false, false }, /* bracketed paste */
    { 2026, false, false },                         /* the screen stands still */
    { 2031, false, false },                         /* tells of colour schemes */
    { 2048, false, false },                         /* tells of sizes */
    { 5522, false, false },                         /* tells of pastes */
    { 9001, false, false },                         /* keys as Windows has them */
};

enum {
    MODE_KEYBOARD = 1 << 28, /* the kitty keyboard */
    MODE_KEYS = 1 << 29,     /* modifyOtherKeys */
    MODE_KEYPAD = 1 << 30,
};

static void note_mode(struct termfilter *filter, unsigned number, bool on)
{
    for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
        if (modes[i].number != number)
            continue;
        if (on != modes[i].off_is_on)
            filter->modes |= 1U << i;
        else if (modes[i].exact)
            filter->modes &= ~(1U << i);
        if (!on && (number == 47 || number == 1047 || number == 1049))
            filter->midline =
                false; /* back where the whole screen was left, as good as always in an empty line */
    }
}

/* 2 off is VT52 and 38 on is Tektronix: other languages than the one that is filtered here. */
static bool set_modes(struct termfilter *filter, const struct csi *csi)
{
    bool on = csi->final == 'h';

    if (csi->count > ARRAY_LEN(csi->numbers))
        return false;
    for (size_t i = 0; i < csi->count; i++)
        if (csi->numbers[i] == (on ? 38U : 2U))
            return false;
    for (size_t i = 0; i < csi->count; i++)
        note_mode(filter, csi->numbers[i], on);
    return true;
}

/* The kitty keyboard: what is pushed (>) must be popped (<); = changes what is on top. */
static bool keyboard(struct termfilter *filter, const struct csi *csi)
{
    unsigned popped = csi->numbers[0] ? csi->numbers[0] : 1;

    if (csi->private == '=')
        filter->modes |= MODE_KEYBOARD;
    else if (csi->private == '>')
        filter->pushed += filter->pushed < 99;
    else
        filter->pushed -= popped < filter->pushed ? popped : filter->pushed;
    return true;
}

static bool keys(struct termfilter *filter, const struct csi *csi)
{
    (void)csi;
    filter->modes |= MODE_KEYS;
    return true;
}

static bool rendition(struct termfilter *filter, const struct csi *csi)
{
    if (csi->count != 1 || csi->numbers[0] != 0) /* a lone 0, or nothing, is plain text */
        filter->look = true;
    return true;
}

static bool region(struct termfilter *filter, const struct csi *csi)
{
    (void)csi;
    filter->region = true;
    return true;
}

static bool set_plain_modes(struct termfilter *filter, const struct csi *csi)
{
    for (size_t i = 0; i < csi->count && i < ARRAY_LEN(csi->numbers); i++)
        if (csi->numbers[i] == 4)
            filter->insert = csi->final == 'h';
    return csi->count <= ARRAY_LEN(csi->numbers);
}

#define ANY 0xff

/* The first row that fits decides; what fits none passes. */
static const struct {
    unsigned char final, private, middle;
    csi_rule *passes;
} csi_rules[] = {
    { 't', ANY, 0, window },        { 'i', ANY, ANY, never }, /* print */
    { 'y', ANY, ANY, never }, /* checksum of the screen (it may show secrets); self-test */
    { ']', ANY, ANY, never }, /* Linux console: switch to another one, blank */
    { 'r', '?', ANY, never }, /* restore modes behind our back */
    { 'w', ANY, '$', never }, /* reports of the terminal's state */
    { 'u', ANY, '$', never },       { 'u', ANY, '&', never },
    { 'p', ANY, '"', never }, /* conformance level, 8-bit controls */
    { 'h', '?', 0, set_modes },     { 'l', '?', 0, set_modes },
    { 'u', '>', 0, keyboard },      { 'u', '<', 0, keyboard },
    { 'u', '=', 0, keyboard },      { 'u', '?', 0, asks },
    { 'h', 0, 0, set_plain_modes }, { 'l', 0, 0, set_plain_modes },
    { 'm', 0, 0, rendition },       { 'r', 0, 0, region },
    { 's', 0, 0, region }, /* margins, or the cursor is kept */
    { 'm', '>', 0, keys },          { 'm', '?', 0, asks },
    { 'n', ANY, 0, asks },                                   /* status, cursor position */
    { 'c', ANY, 0, asks },                                   /* what are you */
    { 'q', '>', 0, asks },                                   /* version */
    { 'x', ANY, 0, asks },          { 'p', ANY, '$', asks }, /* is this mode on */
    { '|', ANY, '#', asks },        { 'S', '?', 0, asks },   /* graphics: how many colours */
};

static void end_csi(struct termfilter *filter, struct out *out)
{
    struct csi csi;
    bool passes = !filter->bad;

    if (passes) {
        parse_csi(filter, &csi);
        for (size_t i = 0; i < ARRAY_LEN(csi_rules); i++) {
            if (csi_rules[i].final != csi.final ||
                (csi_rules[i].private != ANY && csi_rules[i].private != csi.private) ||
                (csi_rules[i].middle != ANY && csi_rules[i].middle != csi.middle))
                continue;
            passes = csi_rules[i].passes(filter, &csi);
            break;
        }
    }
    if (passes)
        pass_held(filter, out);
    else
        enter(filter, GROUND);
}

/* --- OSC --- */

static bool link_passes(const char *rest)
{
    static const char *const schemes[] = { "http://", "https://", "mailto:", "file://" };
    const char *target = strchr(rest, ';');

    if (!target)
        return false;
    target++;
    for (size_t i = 0; i < ARRAY_LEN(schemes); i++)
        if (strncasecmp(target, schemes[i], strlen(schemes[i])) == 0)
            return true;
    return *target == '\0'; /* the end of a link */
}

static bool colour_passes(struct termfilter *filter, unsigned number, const char *rest)
{
    static const char plain[] = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ;:#/?.,+- ";

    if (rest[strspn(rest, plain)])
        return false;
    if (strchr(rest, '?'))
        filter->asked++;
    if (number < 10 && !strchr(rest, '?'))
        filter->colours |= 1U << number;
    /* 10;a;b sets 10 and 11. */
    for (const char *at = rest; at && number >= 10 && number < 20; number++) {
        if (*at != '?')
            filter->colours |= 1U << number;
        at = strchr(at, ';');
        at = at ? at + 1 : NULL;
    }
    return true;
}

static bool colour_reset_passes(struct termfilter *filter, unsigned number, const char *rest)
{
    if (rest[strspn(rest, "0123456789;")])
        return false;
    if (*rest == '\0')
        filter->colours &= ~(1U << (number - 100));
    return true;
}

/* `text` is what stands between ESC ] and the end mark. */
static bool osc_passes(struct termfilter *filter, const char *text)
{
    size_t digits = strspn(text, "0123456789");
    const char *rest = text + digits;
    unsigned number = 0;

    if (digits == 0 || digits > 3 || text[0] == '0' || (*rest && *rest != ';'))
        return false;
    for (size_t i = 0; i < digits; i++)
        number = number * 10 + (unsigned)(text[i] - '0');
    rest += *rest == ';';
    if (number == 8) {
        filter->link = true;
        return link_passes(rest);
    }
    if (number == 4 || number == 5 || (number >= 10 && number <= 19))
        return colour_passes(filter, number, rest);
    if (number == 104 || number == 105 || (number >= 110 && number <= 119))
        return colour_reset_passes(filter, number, rest);
    return false;
}

/* The end mark is still to be held: BEL, or the backslash after the ESC that is held. */
static void end_osc(struct termfilter *filter, unsigned char byte, struct out *out)
{
    size_t end = filter->held_len - (byte == '\\' ? 1 : 0);
    char text[TERMFILTER_HELD + 1] = "";

    memcpy(text, filter->held + 2, end - 2);
    text[end - 2] = '\0';
    hold(filter, byte);
    if (!filter->bad && osc_passes(filter, text))
        pass_held(filter, out);
    else
        enter(filter, GROUND);
}

/* --- the state machine: one function per state; false: look at the byte again --- */

static void drop_string(struct termfilter *filter, bool bell_ends)
{
    enter(filter, DROPPED);
    filter->bell_ends = bell_ends;
}

static void start_character(struct termfilter *filter, unsigned char byte)
{
    static const struct {
        unsigned char first, last, low, high, need;
    } forms[] = {
        { 0xc2, 0xdf, 0x80, 0xbf, 1 }, { 0xe0, 0xe0, 0xa0, 0xbf, 2 }, { 0xe1, 0xec, 0x80, 0xbf, 2 },
        { 0xed, 0xed, 0x80, 0x9f, 2 }, { 0xee, 0xef, 0x80, 0xbf, 2 }, { 0xf0, 0xf0, 0x90, 0xbf, 3 },
        { 0xf1, 0xf3, 0x80, 0xbf, 3 }, { 0xf4, 0xf4, 0x80, 0x8f, 3 },
    };

    for (size_t i = 0; i < ARRAY_LEN(forms); i++)
        if (byte >= forms[i].first && byte <= forms[i].last) {
            enter(filter, UTF8);
            filter->need = forms[i].need;
            filter->low = forms[i].low;
            filter->high = forms[i].high;
            hold(filter, byte);
            return;
        }
}

static bool in_ground(struct termfilter *filter, unsigned char byte, struct out *out)
{
    if (byte == ESC) {
        enter(filter, ESCAPE);
    } else if (byte < 0x80) {
        put_byte(out, byte);
    } else if (!filter->utf8) {
        if (byte < 0xa0)
            put_wrong_byte(filter, out);
        else
            put_byte(out, byte);
    } else {
        start_character(filter, byte);
        if (filter->state != UTF8)
            put_wrong_byte(filter, out);
    }
    return true;
}

static bool in_character(struct termfilter *filter, unsigned char byte, struct out *out)
{
    if (byte < filter->low || byte > filter->high) {
        for (size_t i = 0; i < filter->held_len; i++)
            put_wrong_byte(filter, out);
        enter(filter, GROUND);
        return false;
    }
    hold(filter, byte);
    filter->low = 0x80;
    filter->high = 0xbf;
    if (--filter->need > 0)
        return true;
    if (filter->held[0] == 0xc2 && filter->held[1] < 0xa0)
        enter(filter, GROUND); /* a C1 control */
    else
        pass_held(filter, out);
    return true;
}

/* Controls inside a sequence take effect at once and do not end it. */
static bool in_sequence(struct termfilter *filter, unsigned char byte, struct out *out, bool *done)
{
    *done = true;
    if (byte == ESC) {
        enter(filter, ESCAPE);
    } else if (byte < 0x20) {
        put_byte(out, byte);
    } else if (byte >= 0x80) {
        enter(filter, GROUND);
        return false;
    } else {
        *done = byte == DEL;
    }
    return true;
}

/* What a reset of the terminal does. */
static void forget(struct termfilter *filter)
{
    filter->modes = filter->colours = filter->pushed = 0;
    filter->look = filter->link = filter->region = filter->insert = false;
}

static bool in_escape(struct termfilter *filter, unsigned char byte, struct out *out)
{
    bool done, again = !in_sequence(filter, byte, out, &done);

    if (done)
        return !again;
    hold(filter, byte);
    if (byte < 0x30)
        enter(filter, MIDDLE);
    else if (byte == '[')
        enter(filter, CSI);
    else if (byte == ']')
        enter(filter, OSC);
    else if (byte == 'P')
        enter(filter, DCS);
    else if (strchr("X^_k", byte))
        drop_string(filter, false);
    else {
        if (byte == 'Z')
            filter->asked++;
        if (strchr("NOno|}~", byte)) /* other character sets */
            filter->look = true;
        if (byte == 'c')
            forget(filter);
        if (byte == '=')
            filter->modes |= MODE_KEYPAD;
        if (byte == '>')
            filter->modes &= ~(uint32_t)MODE_KEYPAD;
        pass_held(filter, out);
    }
    return true;
}

/* ESC % switches UTF-8 off (then C1 controls have one byte again), ESC SP the width of controls,
 * ESC ! shows a message in screen.  UTF-8 may be switched on where it is on. */
static bool in_middle(struct termfilter *filter, unsigned char byte, struct out *out)
{
    bool done, again = !in_sequence(filter, byte, out, &done);

    if (done)
        return !again;
    if (byte < 0x30 && filter->held_len > 4)
        filter->bad = true;
    hold(filter, byte);
    if (byte < 0x30)
        return true;
    bool utf8_on = filter->utf8 && filter->held_len == 3 && byte == 'G';

    filter->look = filter->look || strchr("()*+-./$", filter->held[1]);
    if (filter->bad || strchr(" !", filter->held[1]) || (filter->held[1] == '%' && !utf8_on))
        enter(filter, GROUND);
    else
        pass_held(filter, out);
    return true;
}

static bool in_csi(struct termfilter *filter, unsigned char byte, struct out *out)
{
    bool done, again = !in_sequence(filter, byte, out, &done);

    if (done)
        return !again;
    hold(filter, byte);
    if (byte >= 0x40)
        end_csi(filter, out);
    return true;
}

/* In any string: the byte after an ESC.  Anything but a backslash begins a new sequence. */
static bool abandon_string(struct termfilter *filter)
{
    enter(filter, ESCAPE);
    return false;
}

static bool in_osc(struct termfilter *filter, unsigned char byte, struct out *out)
{
    bool first = filter->held_len == 2;

    if (filter->escaped && byte != '\\')
        return abandon_string(filter);
    if (byte == BEL || filter->escaped) {
        end_osc(filter, byte, out);
    } else if (first && byte == 'R') {
        enter(filter, GROUND); /* of the Linux console: has no end mark */
    } else if (first && byte == 'P') {
        enter(filter, PALETTE);
        filter->need = 7;
    } else {
        filter->escaped = byte == ESC;
        filter->bad |= byte != ESC && (byte < 0x20 || byte >= DEL);
        hold(filter, byte);
        if (filter->bad && !filter->escaped)
            drop_string(filter, true);
    }
    return true;
}

static bool in_palette(struct termfilter *filter, unsigned char byte, struct out *out)
{
    bool done, again = !in_sequence(filter, byte, out, &done);

    if (done)
        return !again;
    if (--filter->need == 0)
        enter(filter, GROUND);
    return true;
}

static bool in_dcs(struct termfilter *filter, unsigned char byte, struct out *out)
{
    if (filter->escaped) {
        if (byte != '\\')
            return abandon_string(filter);
        enter(filter, GROUND);
        return true;
    }
    filter->escaped = byte == ESC;
    if (filter->escaped)
        return true;
    hold(filter, byte);
    if ((byte >= '0' && byte <= '9') || byte == ';')
        return true;
    if (byte == 'q' && !filter->bad) {
        put(out, filter->held, filter->held_len);
        enter(filter, SIXEL);
    } else {
        drop_string(filter, false);
    }
    return true;
}

static bool in_sixel(struct termfilter *filter, unsigned char byte, struct out *out)
{
    if (filter->escaped) {
        put(out, "\033\\", 2);
        if (byte != '\\')
            return abandon_string(filter);
        enter(filter, GROUND);
        return true;
    }
    filter->escaped = byte == ESC;
    if ((byte >= 0x20 && byte < DEL) || byte == '\n' || byte == '\r')
        put_byte(out, byte);
    return true;
}

static bool in_dropped(struct termfilter *filter, unsigned char byte, struct out *out)
{
    (void)out;
    if (filter->escaped && byte != '\\')
        return abandon_string(filter);
    if (filter->escaped || (byte == BEL && filter->bell_ends))
        enter(filter, GROUND);
    else
        filter->escaped = byte == ESC;
    return true;
}

static bool (*const states[])(struct termfilter *, unsigned char, struct out *) = {
    [GROUND] = in_ground, [UTF8] = in_character,  [ESCAPE] = in_escape,   [MIDDLE] = in_middle,
    [CSI] = in_csi,       [OSC] = in_osc,         [PALETTE] = in_palette, [DCS] = in_dcs,
    [SIXEL] = in_sixel,   [DROPPED] = in_dropped,
};

/* CAN and SUB end every sequence; ENQ, and CAN in plain text, are dropped. */
static void take(struct termfilter *filter, unsigned char byte, struct out *out)
{
    if (byte == ENQ)
        return;
    filter->look = filter->look || byte == SHIFT_OUT;
    if (byte == CAN || byte == SUB) {
        if (filter->state == SIXEL)
            put(out, "\033\\", 2);
        if (filter->state == GROUND && byte == SUB)
            put_byte(out, byte);
        enter(filter, GROUND);
        return;
    }
    unsigned char *before = out->at;

    while (!states[filter->state](filter, byte, out))
        ;
    filter->midline = filter->midline || (out->at > before && out->at[-1] >= 0x80);
}

static size_t plain_length(const unsigned char *from, size_t len)
{
    size_t at = 0;

    while (at < len && ((from[at] >= 0x20 && from[at] < 0x80) || from[at] == '\n' || from[at] == '\r'))
        at++;
    return at;
}

static void note_line(struct termfilter *filter, const unsigned char *plain, size_t len)
{
    while (len > 0 && plain[len - 1] == '\r')
        len--;
    if (len > 0)
        filter->midline = plain[len - 1] != '\n';
}

void termfilter_start(struct termfilter *filter, bool utf8)
{
    memset(filter, 0, sizeof *filter);
    filter->utf8 = utf8;
}

size_t termfilter_run(struct termfilter *filter, const unsigned char *from, size_t len, unsigned char *to)
{
    struct out out = { to };

    for (size_t at = 0; at < len;) {
        size_t plain = filter->state == GROUND ? plain_length(from + at, len - at) : 0;

        put(&out, from + at, plain);
        note_line(filter, from + at, plain);
        at += plain;
        if (at < len)
            take(filter, from[at++], &out);
    }
    return (size_t)(out.at - to);
}

static void put_numbered(struct out *out, const char *before, unsigned number, const char *after)
{
    char text[32];
    int len = snprintf(text, sizeof text, "\033%s%u%s", before, number, after);

    put(out, text, (size_t)len);
}

size_t termfilter_end(struct termfilter *filter, unsigned char *to)
{
    struct out out = { to };

    if (filter->state == SIXEL)
        put_text(&out, "\033\\");
    if (filter->look) /* plain text in the first character set */
        put_text(&out, "\033[0m\017\033(B");
    if (filter->link)
        put_text(&out, "\033]8;;\033\\");
    if (filter->insert)
        put_text(&out, "\033[4l");
    if (filter->region) /* takes the cursor home, so it is kept */
        put_text(&out, "\0337\033[r\0338");
    for (size_t i = 0; i < ARRAY_LEN(modes); i++)
        if (filter->modes >> i & 1)
            put_numbered(&out, "[?", modes[i].number, modes[i].off_is_on ? "h" : "l");
    if (filter->pushed)
        put_numbered(&out, "[<", filter->pushed, "u");
    if (filter->modes & MODE_KEYBOARD)
        put_text(&out, "\033[=0u");
    if (filter->modes & MODE_KEYS)
        put_text(&out, "\033[>4m");
    if (filter->modes & MODE_KEYPAD)
        put_text(&out, "\033>");
    for (unsigned number = 0; number < 20; number++)
        if (filter->colours >> number & 1)
            put_numbered(&out, "]", 100 + number, "\033\\");
    termfilter_start(filter, filter->utf8);
    return (size_t)(out.at - to);
}
