#pragma once

/* What the host and our program inside a sandbox, cove-files, say to each other over its standard input and
 * output.
 *
 * A frame is a struct frame_head and `length` bytes, FRAME_MAX at most, in the byte order of the machine: both
 * ends are on it.  A request has a number that all its frames carry, both ways; there is one at a time.  Each
 * ends with OK or ERROR.  Where the host sends content or a tree (WRITE, TAKE, UNTAR), the program answers
 * nothing before END but one ERROR, after which it only waits for END: so neither end ever waits for the other
 * to read.
 *
 * Paths and names are bytes, without a NUL at the end.  A path of a request is looked up as by any command
 * inside.  In trees there are only names: one component, never "." or "..". */

#include <stdint.h>

enum {
    FRAME_MAX = 64 << 10,
    FILES_PATH_MAX = 4095, /* bytes of a path or of a link's target */
    FILES_NAME_MAX = 255,
    FILES_DEPTH_MAX = 256,  /* directories in each other; each is a descriptor at both ends */
    FILES_TWINS_MAX = 4096, /* files of a tree with several names that are kept as such */
    FILES_NOTES_MAX = 64,   /* what was not done as asked, told one by one by either end of a tree */
};

struct frame_head {
    uint32_t kind; /* enum frame_kind */
    uint32_t id;
    uint64_t length;
};

enum frame_kind {
    /* --- the host asks: struct files_request, path, other path --- */
    ASK_STAT = 1, /* INFO */
    ASK_LIST,     /* INFO with names, at most `length` of them; OK with `count` 1 if there are more */
    ASK_READ,     /* DATA: `length` bytes at most, from `offset` on */
    ASK_WRITE,    /* the host sends DATA, then END */
    ASK_MAKE,     /* a directory */
    ASK_MOVE,     /* to the other path */
    ASK_REMOVE,
    ASK_SYMLINK, /* whose target is the other path */
    ASK_MODE,
    ASK_TIMES,
    ASK_SEND,   /* a tree comes out: one entry, with all that is below it */
    ASK_TAKE,   /* a tree goes in: the host sends one entry, with all that is below it, then END */
    ASK_UNTAR,  /* a tar goes in, below the path: the host sends DATA, then END */
    ASK_WATCH,  /* EVENTs until the host says CANCEL */
    ASK_END,    /* what the host sends is over; `status` (struct files_done) not 0: forget it */
    ASK_CANCEL, /* of WATCH */

    /* --- the program answers --- */
    SAY_OK = 64, /* struct files_done */
    SAY_ERROR,   /* struct files_note, path */
    SAY_INFO,    /* struct files_entry, name, target */
    SAY_NOTE,    /* struct files_note, path: something was not done as asked */
    SAY_EVENT,   /* struct files_event, path below the watched directory */

    /* --- both: content and trees --- */
    TREE_DATA = 128,
    TREE_HOLE,     /* uint64_t: so many bytes are 0, and need no room */
    TREE_FILE,     /* struct files_entry, name; its content, then FILE_END */
    TREE_FILE_END, /* struct files_done: status not 0: what came is not the whole file */
    TREE_DIR,      /* struct files_entry, name; what is in it, then LEAVE */
    TREE_LEAVE,
    TREE_LINK,     /* struct files_entry, name, target */
    TREE_TWIN,     /* struct files_entry, name: another name of the file whose number is `twin` */
    TREE_LEFT_OUT, /* struct files_note, name: there is something, and it does not come */
};

enum files_flags {
    FILES_FOLLOW = 1 << 0,    /* STAT, SEND, LIST: if the path itself is a link, where it leads to */
    FILES_APPEND = 1 << 1,    /* WRITE: behind what is there */
    FILES_NEW = 1 << 2,       /* WRITE, MOVE: fails if there is something */
    FILES_WHOLE = 1 << 3,     /* WRITE: under another name first, so that the path is never half written */
    FILES_PARENTS = 1 << 4,   /* MAKE: directories on the way too, and one that is there is no error */
    FILES_RECURSIVE = 1 << 5, /* REMOVE, WATCH: with all that is below */
    FILES_INTO = 1 << 6, /* TAKE: what is in the entry goes into the directory `path`, not the entry itself */
};

struct files_request {
    uint32_t flags, mode; /* mode: WRITE, MAKE, MODE, as chmod(2) takes it; UINT32_MAX: as the umask has it */
    uint64_t offset, length;
    int64_t mtime; /* TIMES: seconds */
    uint32_t nsec;
    uint32_t path_len, other_len;
    uint32_t pad;
};

struct files_entry {
    uint32_t mode; /* as stat(2) has it */
    uint32_t nsec;
    int64_t mtime;
    uint64_t size;
    uint32_t uid, gid;
    uint32_t twin; /* FILE: 0, or the next number from 1 on: there may be other names.  TWIN: whose */
    uint32_t name_len, target_len;
    uint32_t pad;
};

struct files_done {
    int32_t status; /* 0, or an errno */
    uint32_t count;
};

enum files_why {
    WHY_FAILED = 1, /* `number` is an errno */
    WHY_SPECIAL,    /* a device, pipe or socket */
    WHY_CHANGED,    /* the file changed while it was read */
    WHY_SETID,      /* came without its set-user-ID, set-group-ID or sticky bit */
    WHY_IN_THE_WAY, /* something of another kind has its name */
    WHY_DEEP,       /* nested too deep */
    WHY_NAME,       /* a name that leads elsewhere: absolute, or with ".." */
    WHY_TWIN,       /* another name of a file that did not come */
    WHY_MORE,       /* `number` more that are not told one by one */
    WHY_FORM,       /* the tar is not one, or is cut off */
};

struct files_note {
    int32_t number;
    uint32_t why; /* enum files_why */
};

enum files_change {
    CHANGE_MADE = 1 << 0,
    CHANGE_WRITTEN = 1 << 1,
    CHANGE_ATTRIBUTES = 1 << 2,
    CHANGE_GONE = 1 << 3,
    CHANGE_DIRECTORY = 1 << 4, /* it is about a directory */
    CHANGE_LOST = 1 << 5, /* there were more than could be told, or than can be watched: look for yourself */
    CHANGE_FLAGS = (1 << 6) - 1,
};

struct files_event {
    uint32_t change; /* enum files_change */
    uint32_t cookie; /* not 0: GONE and MADE of one move have the same */
};
