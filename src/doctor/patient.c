/* The host as the probes find it, and a directory of ours to try things in: where sandboxes would be, because
 * what matters is that file system. */

#include "base/array.h"
#include "base/own.h"
#include "box/private_dir.h"
#include "doctor/doctor.h"
#include "spec/spec.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Those that magic.h does not have are of file systems outside the kernel's tree, or older than it. */
static char *name_file_system(int fd)
{
    static const struct {
        unsigned long magic;
        const char *name;
    } known[] = {
        { EXT4_SUPER_MAGIC, "ext4" },
        { XFS_SUPER_MAGIC, "xfs" },
        { BTRFS_SUPER_MAGIC, "btrfs" },
        { TMPFS_MAGIC, "tmpfs" },
        { RAMFS_MAGIC, "ramfs" },
        { OVERLAYFS_SUPER_MAGIC, "overlayfs" },
        { F2FS_SUPER_MAGIC, "f2fs" },
        { NFS_SUPER_MAGIC, "nfs" },
        { FUSE_SUPER_MAGIC, "fuse" },
        { V9FS_MAGIC, "9p" },
        { SMB2_SUPER_MAGIC, "smb" },
        { CIFS_SUPER_MAGIC, "cifs" },
        { ECRYPTFS_SUPER_MAGIC, "ecryptfs" },
        { MSDOS_SUPER_MAGIC, "vfat" },
        { EXFAT_SUPER_MAGIC, "exfat" },
        { 0x2fc12fc1, "zfs" },
        { 0xca451a4e, "bcachefs" },
    };
    struct statfs found;

    if (fstatfs(fd, &found) < 0)
        return text_copy("an unknown file system");
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if ((unsigned long)found.f_type == known[i].magic)
            return text_copy(known[i].name);
    return text_format("file system 0x%lx", (unsigned long)found.f_type);
}

/* What is there already must be as a run would want it. */
static int check_state(const char *state, struct error *err)
{
    autoclose int sandboxes = -1;

    if (private_dir_make(state, err) < 0)
        return -1;
    sandboxes = store_open(state, err);
    return sandboxes < 0 && err->kind != ERROR_MISSING ? -1 : 0;
}

/* The state directory, or the one that it would be made in. */
static char *nearest(const char *state)
{
    char *path = text_copy(state);

    for (char *slash;
         access(path, F_OK) < 0 && errno == ENOENT && (slash = strrchr(path, '/')) && slash != path;)
        *slash = '\0';
    return path;
}

static int make_parts(int scratch)
{
    static const char *const parts[] = { "lower", "lower/directory", "empty", "u0", "w0", "u1",
                                         "w1",    "merged",          "state" };

    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        if (mkdirat(scratch, parts[i], 0700) < 0)
            return -1;
    autoclose int file = openat(scratch, "lower/file", O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    return file >= 0 && write(file, "below\n", 6) == 6 ? 0 : -1;
}

static int make_scratch(struct patient *patient, struct error *err)
{
    const char *state = patient->host.state;
    struct stat found;

    if (stat(state, &found) == 0 && check_state(state, err) < 0)
        return -1;

    autofree char *parent = nearest(state);
    autofree char *path = text_format("%s/.cove-doctor-XXXXXX", strcmp(parent, "/") == 0 ? "" : parent);

    if (!mkdtemp(path))
        return error_sys(err, "make a directory in %s", parent);
    patient->scratch_path = steal_ptr(&path);
    patient->scratch_name = strrchr(patient->scratch_path, '/') + 1;
    patient->scratch_parent = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    patient->scratch =
        openat(patient->scratch_parent, patient->scratch_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (patient->scratch_parent < 0 || patient->scratch < 0 || make_parts(patient->scratch) < 0)
        return error_sys(err, "write to %s", parent);
    patient->file_system = name_file_system(patient->scratch);
    return 0;
}

void patient_admit(struct patient *patient)
{
    static char image[] = "host";
    struct spec spec = { .image = image };

    patient->scratch = patient->scratch_parent = -1;
    if (host_read(&patient->host, &patient->host_error) < 0 ||
        ids_choose(&spec, &patient->host, &patient->ids, &patient->host_error) < 0)
        return;
    patient->host_error.kind = ERROR_NONE;
    if (make_scratch(patient, &patient->place_error) == 0)
        patient->place_error.kind = ERROR_NONE;
}

void patient_release(struct patient *patient)
{
    struct error ignored;

    if (patient->scratch_parent >= 0)
        (void)store_remove_tree(patient->scratch_parent, patient->scratch_name, &ignored);
    own_close(&patient->scratch);
    own_close(&patient->scratch_parent);
    free(patient->scratch_path);
    free(patient->file_system);
    host_free(&patient->host);
}
