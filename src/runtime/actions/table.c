/* SPDX-License-Identifier: BSD-3-Clause */
/* The start of the library of actions: reads the table of the trial, finds its places in the modules of the process,
 * does what is to be done to variables, and says at the end what became of it. See actions.h. */
#include "runtime/actions/actions.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct action *const rows[] = {
    &action_huge_pages, &action_interleave, &action_bind_to_users, &action_first_touch_spread,
    &action_pad,        &action_pool,       &action_offset,        &action_prefault,
};

const struct action *actions_row(unsigned i)
{
    return i < sizeof rows / sizeof *rows ? rows[i] : NULL;
}

/* A word of the table that says where: OFFSET@MODULE. */
struct frame {
    uintptr_t offset;
    const char *module;
};

struct place {
    char kind;      /* of the first word */
    size_t n_bytes; /* of a static variable */
    bool is_done;   /* its module is loaded, and what can be done at once is done */
    unsigned n_frames;
    struct frame frames[TRIAL_FRAMES_MAX];
};

static struct {
    const struct action *action; /* NULL: there is nothing to do */
    struct trial_effect *effect, none;
    struct place places[TRIAL_PLACES_MAX];
    struct action_path paths[TRIAL_PLACES_MAX];
    unsigned n_places, n_paths, n_done;
    char text[TRIAL_TABLE_BYTES], exe[PATH_MAX];
    struct {
        uintptr_t start;
        size_t n_bytes;
    } statics[TRIAL_PLACES_MAX];
    unsigned n_statics;
    unsigned long long n_added; /* libraries that had been loaded when they were last looked at */
    atomic_flag is_looking;
    long pid; /* of the process that this memory is of: another one that runs in it is a child of vfork */
} table = {.effect = &table.none, .is_looking = ATOMIC_FLAG_INIT};

const struct action *action_hook(void)
{
    return table.action;
}

struct trial_effect *action_effect_hook(void)
{
    return table.effect;
}

bool action_allowed_hook(long result)
{
    if (result >= 0 || result <= -4096)
        return true;
    action_count(&table.effect->n_refused, 1);
    atomic_store_explicit(&table.effect->refused_as, (uint64_t)-result, memory_order_relaxed);
    return false;
}

/* --- places --- */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* A module's base, by the name that it was measured under. */
struct module_look {
    const char *path;
    uintptr_t base;
    bool is_found;
};

static int match_module(struct dl_phdr_info *info, size_t size, void *argument)
{
    struct module_look *look = argument;
    const char *name = *info->dlpi_name ? info->dlpi_name : table.exe;
    (void)size;
    if (strcmp(name, look->path) != 0 && strcmp(last_part(name), last_part(look->path)) != 0)
        return 0;
    look->base = info->dlpi_addr;
    look->is_found = true;
    return 1;
}

/* The address of a word of the table; 0: its module is not loaded. */
static uintptr_t address_of(const struct frame *frame)
{
    struct module_look look = {.path = frame->module};
    (void)dl_iterate_phdr(match_module, &look);
    return look.is_found ? look.base + frame->offset : 0;
}

static bool find_place(struct place *place)
{
    struct action_path path = {.n_frames = place->n_frames, .is_mmap = place->kind == 'm'};
    for (unsigned i = 0; i < place->n_frames; i++)
        if (!(path.frames[i] = address_of(&place->frames[i])))
            return false;
    if (place->kind != 's') {
        table.paths[table.n_paths++] = path;
        return true;
    }
    if (table.action->ready) {
        table.action->ready(path.frames[0], place->n_bytes);
        action_count(&table.effect->n_blocks, 1);
        action_count(&table.effect->n_bytes, place->n_bytes);
    }
    table.statics[table.n_statics].n_bytes = place->n_bytes;
    table.statics[table.n_statics++].start = path.frames[0];
    return true;
}

static void find_places(void)
{
    unsigned n_before = table.n_done;
    for (unsigned i = 0; i < table.n_places; i++) {
        struct place *place = &table.places[i];
        if (!place->is_done && find_place(place)) {
            place->is_done = true;
            table.n_done++;
        }
    }
    if (table.n_done > n_before)
        sites_set_hook(table.paths, table.n_paths);
    if (table.n_done > atomic_load(&table.effect->n_places))
        atomic_store(&table.effect->n_places, table.n_done);
}

static int count_added(struct dl_phdr_info *info, size_t size, void *argument)
{
    (void)size;
    *(unsigned long long *)argument = info->dlpi_adds;
    return 1;
}

bool action_waits_for_places_hook(void)
{
    return table.n_done < table.n_places;
}

void action_look_for_places_hook(void)
{
    unsigned long long n_added = 0;
    if (table.n_done == table.n_places || atomic_flag_test_and_set(&table.is_looking))
        return;
    (void)dl_iterate_phdr(count_added, &n_added);
    if (n_added != table.n_added) {
        table.n_added = n_added;
        find_places();
    }
    atomic_flag_clear(&table.is_looking);
}

/* --- the table --- */

/* The next word up to a character, which is taken away; NULL behind the last one. */
static char *take_word(char **at, char until)
{
    char *word = *at, *end = word && *word ? strchr(word, until) : NULL;
    if (!word || !*word)
        return NULL;
    *at = end ? end + 1 : word + strlen(word);
    if (end)
        *end = '\0';
    return word;
}

/* A number in the digits of a base, up to another character: *end. */
static uintptr_t number_of(char *text, unsigned base, char **end)
{
    static const char digits[] = "0123456789abcdef";
    uintptr_t value = 0;
    for (const char *digit; *text && (digit = strchr(digits, *text)) && (unsigned)(digit - digits) < base; text++)
        value = value * base + (uintptr_t)(digit - digits);
    *end = text;
    return value;
}

static bool take_frame(char *word, struct frame *frame)
{
    char *end;
    frame->offset = number_of(word, 16, &end);
    frame->module = end + 1;
    return end > word && *end == '@' && end[1];
}

static void take_place(char *line)
{
    struct place *place = &table.places[table.n_places];
    char *at = line, *word = take_word(&at, '\t'), *end;
    if (!word || table.n_places == TRIAL_PLACES_MAX)
        return;
    *place = (struct place){.kind = *word};
    if (place->kind == 's' && (word = take_word(&at, '\t')))
        place->n_bytes = number_of(word, 10, &end);
    while (place->n_frames < TRIAL_FRAMES_MAX && (word = take_word(&at, '\t')))
        place->n_frames += take_frame(word, &place->frames[place->n_frames]);
    table.n_places += place->n_frames > 0;
}

static void map_record(const char *path)
{
    long fd = action_call(SYS_openat, AT_FDCWD, (long)path, O_RDWR | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return;
    long start = action_call(SYS_mmap, 0, sizeof(struct trial_effect), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (start >= 0 || start <= -4096)
        table.effect = (struct trial_effect *)start;
    (void)action_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

/* Reads the file into table.text; false when there is none, or it is too long. */
static bool read_table(const char *path)
{
    long n, fd = action_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
    size_t n_read = 0;
    if (fd < 0)
        return false;
    while ((n = action_call(SYS_read, fd, (long)(table.text + n_read), (long)(sizeof table.text - 1 - n_read), 0, 0,
                            0)) > 0)
        n_read += (size_t)n;
    (void)action_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return n_read < sizeof table.text - 1;
}

static const char *environment(const char *name)
{
    size_t len = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (strncmp(*entry, name, len) == 0 && (*entry)[len] == '=')
            return *entry + len + 1;
    return NULL;
}

static const struct action *named(const char *name)
{
    for (unsigned i = 0; actions_row(i); i++)
        if (name && strcmp(actions_row(i)->name, name) == 0)
            return actions_row(i);
    return NULL;
}

/* --- start, fork and end --- */

static void after_fork_in_child(void)
{
    blocks_after_fork_hook();
    table.pid = action_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    action_count(&table.effect->n_forks, 1);
}

__attribute__((constructor)) static void start(void)
{
    const char *path = environment(TRIAL_TABLE_ENV);
    char *at = table.text, *line;
    alloc_wrap_init();
    if (!path || !read_table(path) || !(line = take_word(&at, '\n')) || strcmp(line, TRIAL_TABLE_FIRST) != 0)
        return;
    const char *record = take_word(&at, '\n'), *name = take_word(&at, '\n'), *argument = take_word(&at, '\n');
    const struct action *action = named(name);
    if (!record || !action || !argument || (action->take && !action->take(argument)))
        return;
    map_record(record);
    (void)action_call(SYS_readlinkat, AT_FDCWD, (long)"/proc/self/exe", (long)table.exe, sizeof table.exe - 1, 0, 0);
    while ((line = take_word(&at, '\n')))
        take_place(line);
    blocks_init_hook();
    (void)pthread_atfork(blocks_before_fork_hook, blocks_after_fork_hook, after_fork_in_child);
    table.action = action;
    table.pid = action_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    action_count(&table.effect->n_processes, 1);
    action_look_for_places_hook();
}

void action_end_hook(void)
{
    static atomic_flag is_done = ATOMIC_FLAG_INIT;
    if (!table.action || table.pid != action_call(SYS_getpid, 0, 0, 0, 0, 0, 0) || atomic_flag_test_and_set(&is_done))
        return;
    blocks_look_at_all_hook();
    for (unsigned i = 0; table.action->look && i < table.n_statics; i++)
        table.action->look(table.statics[i].start, table.statics[i].n_bytes);
}

__attribute__((destructor)) static void end(void)
{
    action_end_hook();
}
