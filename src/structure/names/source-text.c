/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds source files, reads them, and cuts statements out of them: see source-text.h. */
#include "structure/names/source-text.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/input.h"
#include "base/path.h"
#include "base/search.h"

#define GROUPS_MAX 1024

enum { INDEX_FILES_MAX = 500000, INDEX_DEPTH_MAX = 64 };

/* The files below a search directory. */
struct index {
    bool is_made;
    char **paths; /* [n_paths] relative to the directory, by last component, then by the whole */
    size_t n_paths, cap_paths;
};

struct source_finder {
    const char *const *search, *const *replace;
    struct index *indices;              /* [number of search directories] */
    const struct program_owner *owners; /* [n_owners] */
    size_t n_owners;
};

struct source_finder *source_finder_new(const char *const *search, const char *const *replace)
{
    struct source_finder *find = calloc(1, sizeof *find);
    size_t n = 0;
    while (search && search[n])
        n++;
    if (!find)
        return NULL;
    find->search = search;
    find->replace = replace;
    find->indices = calloc(n + 1, sizeof *find->indices);
    if (find->indices)
        return find;
    free(find);
    return NULL;
}

void source_finder_free(struct source_finder *find)
{
    if (!find)
        return;
    for (size_t k = 0; find->search && find->search[k]; k++) {
        for (size_t i = 0; i < find->indices[k].n_paths; i++)
            free(find->indices[k].paths[i]);
        free(find->indices[k].paths);
    }
    free(find->indices);
    free(find);
}

void source_path_normalize(const char *path, struct buf *out)
{
    size_t start = out->len_bytes;
    if (*path == '/')
        buf_append(out, "/", 1);
    size_t root = out->len_bytes;
    while (*path && !out->failed) {
        path += strspn(path, "/");
        size_t len = strcspn(path, "/");
        bool is_up = len == 2 && path[0] == '.' && path[1] == '.';
        if (is_up) {
            while (out->len_bytes > root && out->data[out->len_bytes - 1] != '/')
                out->len_bytes--;
            if (out->len_bytes > root)
                out->len_bytes--;
        } else if (len > 0 && !(len == 1 && *path == '.')) {
            if (out->len_bytes > root)
                buf_append(out, "/", 1);
            buf_append(out, path, len);
        }
        path += len;
    }
    if (out->data)
        out->data[out->len_bytes] = 0;
    if (out->len_bytes == start)
        buf_append(out, "", 0);
}

/* Files that the kernel generates describe this process and this machine. */
static bool is_of_kernel(int fd)
{
    static const long magics[] = {PROC_SUPER_MAGIC, SYSFS_MAGIC,        DEBUGFS_MAGIC,       TRACEFS_MAGIC,
                                  SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
                                  EFIVARFS_MAGIC,   PSTOREFS_MAGIC,     SELINUX_MAGIC,       DEVPTS_SUPER_MAGIC};
    struct statfs info;
    if (fstatfs(fd, &info) != 0)
        return true;
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if ((long)info.f_type == magics[i])
            return true;
    return false;
}

/* Does not open devices or pipes: they would block, or have side effects. Links are followed here, once, except those
 * of /proc, which lead to what this process has open; then the file that they lead to is checked. */
static int open_regular(const char *path)
{
    struct stat info;
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, .resolve = RESOLVE_NO_MAGICLINKS};
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return -1;
    int fd = (int)syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof how);
    if (fd < 0 && errno == ENOSYS)
        fd = input_open(AT_FDCWD, path, 0, NULL);
    if (fd >= 0 && (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || is_of_kernel(fd))) {
        (void)close(fd);
        fd = -1;
    }
    return fd;
}

/* Opens directory/name unless that lies elsewhere. */
static int open_inside(const char *directory, const char *name)
{
    struct buf joined = {0};
    buf_printf(&joined, "%s/%s", directory, name);
    char *real = joined.failed ? NULL : realpath(joined.data, NULL), *top = real ? realpath(directory, NULL) : NULL;
    size_t len = top ? strlen(top) : 0;
    bool is_inside = top && strncmp(real, top, len) == 0 && (real[len] == '/' || top[len - 1] == '/');
    int fd = is_inside ? open_regular(real) : -1;
    free(top);
    free(real);
    buf_fini(&joined);
    return fd;
}

static int compare_paths(const void *a, const void *b)
{
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    int order = strcmp(path_last(x), path_last(y));
    return order ? order : strcmp(x, y);
}

/* Adds the files below directory/prefix; hidden directories and symbolic links are skipped. */
static void index_directory(struct index *index, int parent, const char *name, const char *prefix, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | (depth ? O_NOFOLLOW : 0));
    DIR *directory = fd >= 0 ? fdopendir(fd) : NULL;
    if (!directory && fd >= 0)
        (void)close(fd);
    for (struct dirent *entry; directory && (entry = readdir(directory)) && index->n_paths < INDEX_FILES_MAX;) {
        struct stat info;
        struct buf path = {0};
        if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        buf_printf(&path, "%s%s%s", prefix, *prefix ? "/" : "", entry->d_name);
        if (path.failed)
            continue;
        if (S_ISDIR(info.st_mode) && depth < INDEX_DEPTH_MAX)
            index_directory(index, fd, entry->d_name, path.data, depth + 1);
        if (S_ISREG(info.st_mode) &&
            vec_reserve(&index->paths, &index->cap_paths, index->n_paths + 1, sizeof *index->paths)) {
            index->paths[index->n_paths++] = path.data;
            continue;
        }
        buf_fini(&path);
    }
    if (directory)
        (void)closedir(directory);
}

/* How many components at their ends two paths have in common. */
static size_t count_common(const char *a, const char *b)
{
    size_t i = strlen(a), k = strlen(b), n = 0;
    while (i > 0 && k > 0 && a[i - 1] == b[k - 1]) {
        n += a[i - 1] == '/';
        i--;
        k--;
    }
    return n + ((i == 0 || a[i - 1] == '/') && (k == 0 || b[k - 1] == '/'));
}

/* For the search of a last component among the paths of a directory. */
struct sought_name {
    const struct index *index;
    const char *name;
};

static bool is_path_before(const void *context, size_t i)
{
    const struct sought_name *sought = context;
    return strcmp(path_last(sought->index->paths[i]), sought->name) < 0;
}

static int open_indexed(struct index *index, const char *directory, const char *path)
{
    const char *best = NULL, *name = path_last(path);
    size_t n_best = 0;
    if (!index->is_made) {
        index->is_made = true;
        index_directory(index, AT_FDCWD, directory, "", 0);
        if (index->n_paths)
            qsort(index->paths, index->n_paths, sizeof *index->paths, compare_paths);
    }
    size_t low = search_where(index->n_paths, is_path_before, &(struct sought_name){index, name});
    for (; low < index->n_paths && strcmp(path_last(index->paths[low]), name) == 0; low++) {
        size_t n = count_common(index->paths[low], path);
        if (n > n_best) {
            n_best = n;
            best = index->paths[low];
        }
    }
    return best ? open_inside(directory, best) : -1;
}

/* In "DIR/+" the path itself is tried first: it is the best match and needs no list of all files. */
static int open_below(struct source_finder *find, size_t k, const char *path)
{
    size_t len = strlen(find->search[k]);
    bool is_deep = len >= 2 && strcmp(find->search[k] + len - 2, "/+") == 0;
    char *directory = strndup(find->search[k], is_deep ? (len > 2 ? len - 2 : 1) : len);
    int fd = -1;
    for (const char *tail = path; directory && fd < 0 && tail; tail = is_deep ? NULL : strchr(tail, '/')) {
        tail += *tail == '/';
        fd = open_inside(directory, tail);
    }
    if (directory && fd < 0 && is_deep)
        fd = open_indexed(&find->indices[k], directory, path);
    free(directory);
    return fd;
}

static int open_replaced(const struct source_finder *find, const char *path)
{
    int fd = -1;
    for (size_t i = 0; fd < 0 && find->replace && find->replace[i]; i++) {
        const char *rule = find->replace[i], *equals = strchr(rule, '=');
        size_t len = equals ? (size_t)(equals - rule) : 0;
        if (!equals || strncmp(path, rule, len) != 0)
            continue;
        struct buf name = {0};
        buf_append(&name, equals + 1, strlen(equals + 1));
        source_path_normalize(path + len, &name);
        if (!name.failed && name.data)
            fd = open_regular(name.data);
        buf_fini(&name);
    }
    return fd;
}

static int find_open(struct source_finder *find, const char *path)
{
    struct buf plain = {0};
    source_path_normalize(path, &plain);
    if (plain.failed || !plain.data || plain.len_bytes == 0 || strcmp(plain.data, "/") == 0) {
        buf_fini(&plain);
        return -1;
    }
    int fd = open_replaced(find, path);
    if (fd < 0)
        fd = open_replaced(find, plain.data);
    if (fd < 0 && *path == '/')
        fd = open_regular(path);
    for (size_t k = 0; fd < 0 && find->search && find->search[k]; k++)
        fd = open_below(find, k, plain.data);
    buf_fini(&plain);
    return fd;
}

bool program_owner_add(const char *program, struct program_owner *owners, size_t *n)
{
    struct stat info;
    if (stat(program, &info) != 0 || info.st_uid == 0)
        return true;
    for (size_t i = 0; i < *n; i++)
        if (owners[i].user == info.st_uid)
            return true;
    if (*n == PROGRAM_OWNERS_MAX)
        return false;
    owners[(*n)++] = (struct program_owner){info.st_uid, info.st_gid};
    return true;
}

void source_finder_limit(struct source_finder *find, const struct program_owner *owners, size_t n)
{
    find->owners = owners;
    find->n_owners = n;
}

/* Makes this thread read files as that user and group; the other threads and the other rights of the process stay as
 * they are. False when that is not possible. */
static bool begin_as_owner(const struct program_owner *owner)
{
    if (syscall(SYS_setgroups, 0, NULL) != 0)
        return false;
    (void)setfsgid(owner->group);
    (void)setfsuid(owner->user);
    /* an invalid number changes nothing and returns the current one */
    return (unsigned)setfsuid((uid_t)-1) == owner->user && (unsigned)setfsgid((gid_t)-1) == owner->group;
}

static void end_as_owner(const gid_t *groups, int n_groups)
{
    (void)setfsuid(geteuid());
    (void)setfsgid(getegid());
    (void)syscall(SYS_setgroups, n_groups, groups);
}

static int open_as(struct source_finder *find, const char *path, const struct program_owner *owner)
{
    gid_t groups[GROUPS_MAX];
    int n_groups = getgroups(GROUPS_MAX, groups);
    if (n_groups < 0)
        return -1;
    int fd = begin_as_owner(owner) ? find_open(find, path) : -1;
    end_as_owner(groups, n_groups);
    return fd;
}

int source_finder_open(struct source_finder *find, const char *path)
{
    if (geteuid() != 0 || find->n_owners == 0)
        return find_open(find, path);
    int fd = -1;
    for (size_t i = 0; i < find->n_owners; i++) {
        if (fd >= 0)
            (void)close(fd);
        fd = open_as(find, path, &find->owners[i]);
        if (fd < 0)
            return -1;
    }
    return fd;
}

/* --- texts and statements --- */

#define STATEMENT_LINES_MAX 8
#define FILE_BYTES_MAX (64u << 20)

struct source_file {
    char *text;   /* lines are NUL-terminated in place; NULL when unreadable */
    char **lines; /* [n_lines] */
    size_t n_lines, cap_lines;
};

struct source_text {
    struct source_finder *find;
    struct strtab paths;
    struct source_file *files; /* [paths.n_strings] */
    size_t cap_files;
};

struct source_text *source_text_new(const char *const *search, const char *const *replace)
{
    struct source_text *source = calloc(1, sizeof *source);
    if (!source)
        return NULL;
    source->find = source_finder_new(search, replace);
    if (source->find)
        return source;
    free(source);
    return NULL;
}

void source_text_free(struct source_text *source)
{
    if (!source)
        return;
    for (size_t i = 0; i < source->paths.n_strings; i++) {
        free(source->files[i].text);
        free(source->files[i].lines);
    }
    free(source->files);
    source_finder_free(source->find);
    strtab_fini(&source->paths);
    free(source);
}

static void split_lines(struct source_file *file)
{
    for (char *p = file->text; p && *p;) {
        if (!vec_reserve(&file->lines, &file->cap_lines, file->n_lines + 1, sizeof *file->lines))
            return;
        file->lines[file->n_lines++] = p;
        char *end = strchr(p, '\n');
        if (!end)
            return;
        *end = 0;
        p = end + 1;
    }
}

static void read_source(const struct source_text *source, const char *path, struct source_file *out)
{
    struct buf text = {0};
    char chunk[16384];
    int fd = source_finder_open(source->find, path);
    if (fd < 0)
        return;
    for (ssize_t n; (n = read(fd, chunk, sizeof chunk)) > 0 && text.len_bytes < FILE_BYTES_MAX;)
        buf_append(&text, chunk, (size_t)n);
    (void)close(fd);
    out->text = text.data;
    split_lines(out);
}

const char *source_text_line(struct source_text *source, const char *path, uint32_t line)
{
    if (!path || line == 0 ||
        !vec_reserve(&source->files, &source->cap_files, source->paths.n_strings + 1, sizeof *source->files))
        return NULL;
    size_t n_before = source->paths.n_strings;
    int64_t id = strtab_intern(&source->paths, path);
    if (id < 0)
        return NULL;
    if ((size_t)id == n_before)
        read_source(source, path, &source->files[id]);
    const struct source_file *file = &source->files[id];
    return line <= file->n_lines ? file->lines[line - 1] : NULL;
}

/* The end of the string or character that begins at i; i itself when none does. A ' between digits is a separator. */
static size_t skip_quoted(const char *line, size_t i)
{
    size_t end = i + 1;
    if ((line[i] != '"' && line[i] != '\'') || (line[i] == '\'' && i > 0 && isxdigit((unsigned char)line[i - 1])))
        return i;
    while (line[end] && line[end] != line[i])
        end += line[end] == '\\' && line[end + 1] ? 2 : 1;
    return end + (line[end] != 0);
}

/* The end of the comment that begins at i, which may end on a later line; i itself when none does. */
static size_t skip_comment(const char *line, size_t i)
{
    if (line[i] != '/' || (line[i + 1] != '/' && line[i + 1] != '*'))
        return i;
    const char *end = line[i + 1] == '*' ? strstr(line + i + 2, "*/") : NULL;
    return end ? (size_t)(end - line) + 2 : i + strlen(line + i);
}

/* Length of the code on a line: without comments and blanks at its end. */
static size_t code_length(const char *line)
{
    size_t len = 0;
    for (size_t i = 0; line[i];) {
        size_t behind = skip_comment(line, i);
        if (behind > i) {
            i = behind;
            continue;
        }
        behind = skip_quoted(line, i);
        bool is_code = behind > i || !isspace((unsigned char)line[i]);
        i = behind > i ? behind : i + 1;
        len = is_code ? i : len;
    }
    return len;
}

/* Replaces comments between code, and what strings hold, by blanks. */
static void blank_words(char *text, bool has_comments)
{
    for (size_t i = 0; text[i];) {
        size_t behind = has_comments ? skip_comment(text, i) : i;
        size_t quoted = behind > i ? i : skip_quoted(text, i);
        if (behind > i)
            memset(text + i, ' ', behind - i);
        else if (quoted > i + 1 && text[quoted - 1] == text[i])
            memset(text + i + 1, ' ', quoted - i - 2);
        behind = behind > i ? behind : quoted;
        i = behind > i ? behind : i + 1;
    }
}

/* True when a statement ends with this line, so that the next line begins another one. */
static bool ends_statement(const char *line)
{
    size_t len = code_length(line);
    size_t first = strspn(line, " \t");
    const char *comment_end = strstr(line, "*/");
    if (first >= len || line[first] == '#' || (comment_end && !strstr(line, "/*")))
        return true;
    return strchr(";{}:", line[len - 1]) != NULL;
}

static bool is_fortran(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot && (dot[1] == 'f' || dot[1] == 'F') && strchr("o90p7", dot[2] ? dot[2] : '9');
}

/* The code on a line of Fortran without continuation signs; *is_open: it continues on the next one. */
static size_t fortran_code(const char *line, size_t *indent, bool *is_open)
{
    size_t len = strcspn(line, "!");
    while (len > 0 && isspace((unsigned char)line[len - 1]))
        len--;
    *indent = strspn(line, " \t&");
    *is_open = len > 0 && line[len - 1] == '&';
    return len - *is_open;
}

/* In fixed form a sign in the sixth column continues the line before. */
static bool is_old_continuation(const char *path, const char *line)
{
    const char *dot = strrchr(path, '.');
    bool is_old = dot && (!dot[2] || strcmp(dot + 1, "for") == 0 || strcmp(dot + 1, "f77") == 0);
    return is_old && line && strspn(line, " ") == 5 && line[5] && line[5] != '0';
}

/* Whether a line of Fortran continues on the next one. */
static bool is_continued(struct source_text *source, const char *path, uint32_t line)
{
    size_t indent;
    bool is_open = false;
    const char *text = source_text_line(source, path, line);
    if (text)
        (void)fortran_code(text, &indent, &is_open);
    return is_open || (text && is_old_continuation(path, source_text_line(source, path, line + 1)));
}

bool source_text_statement(struct source_text *source, const char *path, uint32_t line, uint32_t column,
                           struct buf *statement, size_t *offset)
{
    const char *text = source_text_line(source, path, line);
    if (!text)
        return false;
    bool fortran = is_fortran(path);
    uint32_t first = line, last = line;
    while (first > 1 && line - first < STATEMENT_LINES_MAX) {
        const char *before = source_text_line(source, path, first - 1);
        if (!before || (fortran ? !is_continued(source, path, first - 1) : ends_statement(before)))
            break;
        first--;
    }
    for (uint32_t i = first; i <= last; i++) {
        text = source_text_line(source, path, i);
        size_t indent = strspn(text, " \t");
        bool is_open = false;
        size_t len = fortran ? fortran_code(text, &indent, &is_open) : code_length(text);
        indent = fortran && is_old_continuation(path, text) ? 6 : indent;
        if (i == line)
            *offset = statement->len_bytes + (column > indent ? column - 1 - indent : 0);
        if (len > indent)
            buf_append(statement, text + indent, len - indent);
        buf_append(statement, " ", 1);
        is_open = fortran ? is_continued(source, path, i) : !ends_statement(text);
        if (i >= line && i - line < STATEMENT_LINES_MAX && is_open && source_text_line(source, path, i + 1))
            last = i + 1;
    }
    if (statement->data)
        blank_words(statement->data, !fortran);
    if (*offset > statement->len_bytes)
        *offset = 0;
    return !statement->failed;
}
