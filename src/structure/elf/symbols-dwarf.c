/* SPDX-License-Identifier: BSD-3-Clause */
/* Functions, inlining, lines and variables with static storage from DWARF. Units are found by their own ranges, since
 * not every compiler writes .debug_aranges, and the functions of a unit are indexed when the first of them is needed.
 */
#include "structure/elf/symbols-dwarf.h"

#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#include "base/path.h"
#include "base/search.h"

#define WALK_DEPTH_MAX 64
#define ORIGINS_MAX 16 /* entries that together describe one function */

static int compare_ranges(const void *a, const void *b)
{
    const struct dwarf_range *x = a, *y = b;
    return x->low < y->low ? -1 : x->low > y->low;
}

/* Appends the address ranges of die to a list. */
static void add_ranges(Dwarf_Die *die, size_t unit, struct dwarf_range **list, size_t *n, size_t *capacity)
{
    Dwarf_Addr base = 0, low = 0, high = 0;
    for (ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &low, &high)) > 0;) {
        if (low >= high || !vec_reserve(list, capacity, *n + 1, sizeof **list))
            continue;
        (*list)[(*n)++] = (struct dwarf_range){.low = low, .high = high, .unit = unit, .die = *die};
    }
}

void symbols_dwarf_load(struct symbols *symbols)
{
    symbols->dwarf = dwfl_module_getdwarf(symbols->module, &symbols->dwarf_bias);
    Dwarf_CU *cu = NULL;
    Dwarf_Die die, split;
    uint8_t type = 0;
    while (symbols->dwarf && dwarf_get_units(symbols->dwarf, cu, &cu, NULL, &type, &die, &split) == 0) {
        if (type != DW_UT_compile && type != DW_UT_skeleton)
            continue;
        if (!vec_reserve(&symbols->units, &symbols->cap_units, symbols->n_units + 1, sizeof *symbols->units))
            break;
        size_t unit = symbols->n_units++;
        symbols->units[unit].die = die;
        symbols->units[unit].scopes = type == DW_UT_skeleton && split.addr ? split : die;
        add_ranges(&die, unit, &symbols->ranges, &symbols->n_ranges, &symbols->cap_ranges);
    }
    if (symbols->n_ranges)
        qsort(symbols->ranges, symbols->n_ranges, sizeof *symbols->ranges, compare_ranges);
}

void symbols_dwarf_free(struct symbols *symbols)
{
    for (size_t i = 0; i < symbols->n_units; i++)
        free(symbols->units[i].functions);
    free(symbols->units);
    free(symbols->ranges);
    free(symbols->scopes);
}

/* The last range that starts at or before address and contains it; a few ranges before it are checked too, since they
 * may overlap. */
static const struct dwarf_range *find_range(const struct dwarf_range *ranges, size_t n, uint64_t address)
{
    size_t low = search_upto(ranges, n, SEARCH_KEY(struct dwarf_range, low), address);
    for (size_t tries = 0; low > 0 && tries < 16; tries++)
        if (address < ranges[--low].high)
            return &ranges[low];
    return NULL;
}

static bool holds_functions(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_structure_type ||
           tag == DW_TAG_class_type || tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block;
}

static void index_functions(struct dwarf_unit *unit, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > WALK_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        int tag = dwarf_tag(&die);
        if (tag == DW_TAG_subprogram)
            add_ranges(&die, 0, &unit->functions, &unit->n_functions, &unit->cap_functions);
        if (holds_functions(tag))
            index_functions(unit, &die, depth + 1);
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* The unit with its functions indexed. */
static struct dwarf_unit *indexed_unit(struct symbols *symbols, size_t index)
{
    struct dwarf_unit *unit = &symbols->units[index];
    if (!unit->indexed) {
        unit->indexed = true;
        index_functions(unit, &unit->scopes, 0);
        if (unit->n_functions)
            qsort(unit->functions, unit->n_functions, sizeof *unit->functions, compare_ranges);
    }
    return unit;
}

static struct dwarf_unit *find_unit(struct symbols *symbols, uint64_t address)
{
    const struct dwarf_range *range = find_range(symbols->ranges, symbols->n_ranges, address);
    return range ? indexed_unit(symbols, range->unit) : NULL;
}

enum fact { NAME, LINKAGE, LINKAGE_MIPS, DECL_FILE, DECL_LINE, ORIGIN, SPECIFICATION, N_FACTS };

/* The attributes of a function, of its own entry or of the entry that it is an instance of or defines: each from the
 * first entry that has it. */
struct facts {
    Dwarf_Attribute items[N_FACTS];
    unsigned has; /* bit of each */
};

static int take_fact(Dwarf_Attribute *attribute, void *context)
{
    static const unsigned names[] = {[NAME] = DW_AT_name,
                                     [LINKAGE] = DW_AT_linkage_name,
                                     [LINKAGE_MIPS] = DW_AT_MIPS_linkage_name,
                                     [DECL_FILE] = DW_AT_decl_file,
                                     [DECL_LINE] = DW_AT_decl_line,
                                     [ORIGIN] = DW_AT_abstract_origin,
                                     [SPECIFICATION] = DW_AT_specification};
    struct facts *facts = context;
    for (unsigned i = 0; i < N_FACTS; i++)
        if (dwarf_whatattr(attribute) == names[i] && !(facts->has & 1u << i)) {
            facts->items[i] = *attribute;
            facts->has |= 1u << i;
        }
    return DWARF_CB_OK;
}

static void read_facts(Dwarf_Die *die, struct facts *facts)
{
    const unsigned links = 1u << ORIGIN | 1u << SPECIFICATION;
    unsigned had = 0;
    Dwarf_Die at = *die;
    facts->has = 0;
    for (unsigned i = 0; i < ORIGINS_MAX; i++) {
        facts->has &= ~links;
        (void)dwarf_getattrs(&at, take_fact, facts, 0);
        had |= facts->has;
        Dwarf_Attribute *next = &facts->items[facts->has & 1u << ORIGIN ? ORIGIN : SPECIFICATION];
        if (!(facts->has & links) || !dwarf_formref_die(next, &at))
            break;
    }
    facts->has = had;
}

static const char *text_of(struct facts *facts, enum fact fact)
{
    return facts->has & 1u << fact ? dwarf_formstring(&facts->items[fact]) : NULL;
}

static const char *linkage_name(struct facts *facts)
{
    return text_of(facts, facts->has & 1u << LINKAGE ? LINKAGE : LINKAGE_MIPS);
}

/* From a concrete or inlined function to its declaration in a class; false when it has none. */
static bool find_declaration(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    for (int i = 0; i < 4 && dwarf_attr(die, DW_AT_abstract_origin, &attribute); i++)
        if (!dwarf_formref_die(&attribute, die))
            return false;
    return dwarf_attr(die, DW_AT_specification, &attribute) && dwarf_formref_die(&attribute, die);
}

const char *symbols_own_file(struct symbols *symbols, Dwarf_Die *unit, const char *path)
{
    Dwarf_Attribute attribute;
    struct buf joined = {0};
    if (!path || *path == '/')
        return symbols_own_path(symbols, path);
    const char *directory =
        dwarf_attr_integrate(unit, DW_AT_comp_dir, &attribute) ? dwarf_formstring(&attribute) : NULL;
    if (!directory || !*directory)
        return symbols_own_path(symbols, path);
    buf_printf(&joined, "%s/%s", directory, path);
    const char *owned = joined.failed ? NULL : symbols_own_path(symbols, joined.data);
    buf_fini(&joined);
    return owned;
}

/* The same for a string that libdw keeps; the last answer is cached. */
static const char *own_kept_file(struct symbols *symbols, Dwarf_Die *unit, const char *path)
{
    if (!path || path != symbols->path_raw)
        symbols->path_owned = symbols_own_file(symbols, unit, path);
    symbols->path_raw = path;
    return symbols->path_owned;
}

/* The file that the attribute DW_AT_decl_file names. */
static const char *file_of(struct symbols *symbols, Dwarf_Attribute *attribute)
{
    Dwarf_Die unit;
    Dwarf_Word index = 0;
    Dwarf_Files *files = NULL;
    size_t n_files = 0;
    Dwarf_Half version = 0;
    if (dwarf_formudata(attribute, &index) != 0 ||
        dwarf_cu_info(attribute->cu, &version, NULL, &unit, NULL, NULL, NULL, NULL) != 0 ||
        (index == 0 && version < 5) || dwarf_getsrcfiles(&unit, &files, &n_files) != 0 || index >= n_files)
        return NULL;
    return own_kept_file(symbols, &unit, dwarf_filesrc(files, index, NULL, NULL));
}

/* --- what an entry lies in --- */

/* libdw finds that by walking the unit from its beginning, for each entry anew. Large units of C++ have many entries
 * whose names need it, so that the scopes of the last unit are kept. */

static bool is_scope(int tag)
{
    return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
           tag == DW_TAG_structure_type || tag == DW_TAG_union_type || tag == DW_TAG_subprogram ||
           tag == DW_TAG_lexical_block;
}

static uint64_t place_of(const Dwarf_Die *die)
{
    return (uint64_t)(uintptr_t)die->addr;
}

/* Appends the scopes below one, in the order of their places; where a damaged file leads back, the list ends. What is
 * nested too deeply, or finds no memory, is left out. */
static void add_scopes(struct symbols *symbols, Dwarf_Die *above, size_t parent, unsigned depth)
{
    Dwarf_Die child;
    uint64_t last = place_of(above);
    for (int more = dwarf_child(above, &child); more == 0 && place_of(&child) > last;
         more = dwarf_siblingof(&child, &child)) {
        size_t n = symbols->n_scopes;
        last = place_of(&child);
        if (!is_scope(dwarf_tag(&child)) ||
            !vec_reserve(&symbols->scopes, &symbols->cap_scopes, n + 1, sizeof *symbols->scopes))
            continue;
        symbols->scopes[symbols->n_scopes++] = (struct dwarf_scope){place_of(&child), child, parent};
        if (depth < SYMBOLS_SCOPES_MAX)
            add_scopes(symbols, &child, n + 1, depth + 1);
    }
}

int symbols_scopes_around(struct symbols *symbols, Dwarf_Die *die, Dwarf_Die scopes[SYMBOLS_SCOPES_MAX])
{
    Dwarf_Die unit;
    int n = 0;
    scopes[n++] = *die;
    if (symbols->scopes_of != die->cu) {
        symbols->n_scopes = 0;
        symbols->scopes_of = die->cu;
        if (dwarf_diecu(die, &unit, NULL, NULL))
            add_scopes(symbols, &unit, 0, 0);
    }
    size_t i = search_below(symbols->scopes, symbols->n_scopes, SEARCH_KEY(struct dwarf_scope, place), place_of(die));
    bool is_known = i < symbols->n_scopes && symbols->scopes[i].place == place_of(die);
    for (size_t at = is_known ? symbols->scopes[i].parent : 0; at && n < SYMBOLS_SCOPES_MAX;
         at = symbols->scopes[at - 1].parent)
        scopes[n++] = symbols->scopes[at - 1].die;
    return n;
}

/* --- lambdas among the arguments of templates --- */

#define LAMBDA "<lambda"
#define LAMBDAS_MAX 8
#define ARGUMENTS_DEPTH 4

struct lambdas {
    struct {
        const char *file;
        Dwarf_Word line;
    } places[LAMBDAS_MAX];
    unsigned n;
};

static void follow_origin(Dwarf_Die *die)
{
    Dwarf_Attribute link;
    for (int i = 0;
         i < 4 && (dwarf_attr(die, DW_AT_abstract_origin, &link) || dwarf_attr(die, DW_AT_specification, &link)); i++)
        if (!dwarf_formref_die(&link, die))
            return;
}

static bool is_class(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return tag == DW_TAG_class_type || tag == DW_TAG_structure_type;
}

/* Whether a class is that of a lambda: it has no name, or one of the compiler's, and can be called. */
static bool is_lambda(Dwarf_Die *class)
{
    const char *name = dwarf_diename(class), *its;
    Dwarf_Die child;
    if (name)
        return strncmp(name, LAMBDA, strlen(LAMBDA)) == 0;
    for (int more = dwarf_child(class, &child); more == 0; more = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_subprogram && (its = dwarf_diename(&child)) &&
            strncmp(its, "operator()", strlen("operator()")) == 0)
            return true;
    return false;
}

/* Where the class of a lambda is; false where that is not known. */
static bool find_place(struct symbols *symbols, Dwarf_Die *class, const char **file, Dwarf_Word *line)
{
    Dwarf_Attribute attribute;
    *file = dwarf_attr(class, DW_AT_decl_file, &attribute) ? file_of(symbols, &attribute) : NULL;
    return *file && dwarf_attr(class, DW_AT_decl_line, &attribute) && dwarf_formudata(&attribute, line) == 0;
}

/* Lists the lambdas among the template arguments of a function or class, and among those of the arguments. */
static void find_lambdas(struct symbols *symbols, Dwarf_Die *die, unsigned depth, struct lambdas *found)
{
    Dwarf_Die origin = *die, child, type;
    Dwarf_Attribute link;
    follow_origin(&origin);
    for (int more = dwarf_child(&origin, &child); more == 0 && depth < ARGUMENTS_DEPTH;
         more = dwarf_siblingof(&child, &child)) {
        int tag = dwarf_tag(&child);
        if (tag == DW_TAG_GNU_template_parameter_pack)
            find_lambdas(symbols, &child, depth + 1, found);
        if (tag != DW_TAG_template_type_parameter || !dwarf_attr(&child, DW_AT_type, &link) ||
            !dwarf_formref_die(&link, &type) || !is_class(&type))
            continue;
        if (!is_lambda(&type))
            find_lambdas(symbols, &type, depth + 1, found);
        else if (found->n < LAMBDAS_MAX &&
                 find_place(symbols, &type, &found->places[found->n].file, &found->places[found->n].line))
            found->n++;
    }
}

/* Behind the '>' that ends what begins with the '<' at p. */
static const char *angle_end(const char *p)
{
    int depth = 0;
    for (; *p; p++) {
        depth += (*p == '<') - (*p == '>');
        if (depth == 0)
            return p + 1;
    }
    return p;
}

/* Appends the name of a function or class as DWARF has it. Instances of a template with different lambdas have the same
 * one ("call<main()::<lambda(int)> >"), so that it gets their places. */
static void put_die_name(struct symbols *symbols, Dwarf_Die *die, const char *name, struct buf *text)
{
    struct lambdas lambdas = {.n = 0};
    unsigned k = 0;
    const char *at;
    if (strstr(name, LAMBDA))
        find_lambdas(symbols, die, 0, &lambdas);
    while (k < lambdas.n && (at = strstr(name, LAMBDA))) {
        const char *end = angle_end(at);
        bool is_scope = strncmp(end, "::", 2) == 0; /* of what is the argument */
        buf_append(text, name, (size_t)((is_scope ? end : at) - name));
        if (!is_scope) {
            buf_printf(text, "{lambda at %s:%ju}", path_last(lambdas.places[k].file),
                       (uintmax_t)lambdas.places[k].line);
            k++;
        }
        name = end;
    }
    buf_printf(text, "%s", name);
}

/* Member functions of classes that no other unit can name have no linkage name: their name is put together from the
 * scopes around the declaration. NULL for everything else. */
static const char *member_function_name(struct symbols *symbols, Dwarf_Die *function)
{
    Dwarf_Die die = *function, scopes[SYMBOLS_SCOPES_MAX];
    struct buf name = {0};
    if (!find_declaration(&die))
        return NULL;
    int n = symbols_scopes_around(symbols, &die, scopes);
    bool is_member = n > 1 && is_class(&scopes[1]);
    for (int i = is_member ? n - 1 : -1; i >= 0; i--) {
        const char *part = dwarf_diename(&scopes[i]);
        put_die_name(symbols, &scopes[i], part ? part : "(anonymous namespace)", &name);
        buf_printf(&name, "%s", i ? "::" : "");
    }
    const char *owned = name.len_bytes ? symbols_own_name(symbols, name.data) : NULL;
    buf_fini(&name);
    return owned;
}

/* The entry that names the type of die, without const and pointers. */
static bool find_class(Dwarf_Die *die, Dwarf_Die *class)
{
    Dwarf_Attribute attribute;
    *class = *die;
    for (int i = 0; i < 4 && dwarf_attr(class, DW_AT_type, &attribute); i++) {
        if (!dwarf_formref_die(&attribute, class))
            return false;
        if (is_class(class))
            return true;
    }
    return false;
}

/* The class of a lambda, whose function die is: it has no name, or one of the compiler's. */
static bool find_lambda(Dwarf_Die *function, Dwarf_Die *class)
{
    Dwarf_Die die = *function, child;
    follow_origin(&die);
    for (int more = dwarf_child(&die, &child); more == 0; more = dwarf_siblingof(&child, &child))
        if (dwarf_tag(&child) == DW_TAG_formal_parameter) { /* the first one is the object */
            const char *name = find_class(&child, class) ? dwarf_diename(class) : "?";
            return !name || strncmp(name, LAMBDA, strlen(LAMBDA)) == 0;
        }
    return false;
}

/* The names of the scopes around a function, and its own, from the outermost in: "S<int>::run". */
static void put_qualified(struct symbols *symbols, Dwarf_Die *function, struct buf *text)
{
    Dwarf_Die die = *function, scopes[SYMBOLS_SCOPES_MAX];
    if (!find_declaration(&die))
        die = *function;
    int n = symbols_scopes_around(symbols, &die, scopes);
    for (int i = n - 1; i >= 0; i--) {
        const char *part = dwarf_tag(&scopes[i]) != DW_TAG_lexical_block ? dwarf_diename(&scopes[i]) : NULL;
        if (!part)
            continue;
        buf_printf(text, "%s", text->len_bytes ? "::" : "");
        put_die_name(symbols, &scopes[i], part, text);
    }
}

/* Each instance of a template has a lambda of its own at the same place: appends what these instances are called, and
 * "::"; nothing for a lambda in other code. */
static void put_instance(struct symbols *symbols, Dwarf_Die *class, struct buf *text)
{
    Dwarf_Die scopes[SYMBOLS_SCOPES_MAX];
    struct buf name = {0};
    int n = symbols_scopes_around(symbols, class, scopes), i = 1;
    while (i < n && dwarf_tag(&scopes[i]) != DW_TAG_subprogram)
        i++;
    if (i < n)
        put_qualified(symbols, &scopes[i], &name);
    if (name.data && strchr(name.data, '<'))
        buf_printf(text, "%s::", name.data);
    buf_fini(&name);
}

/* The name of a lambda's function, which is "operator()" of a class without a name: where the lambda is, and in which
 * instance of a template, tells it from others. Its facts get that place where they have none. NULL for other
 * functions. */
static const char *lambda_name(struct symbols *symbols, Dwarf_Die *die, struct facts *facts)
{
    const char *name = text_of(facts, NAME), *file;
    Dwarf_Attribute attributes[2];
    Dwarf_Die class;
    Dwarf_Word line = 0;
    if (!name || strncmp(name, "operator()", strlen("operator()")) != 0 || !find_lambda(die, &class) ||
        !dwarf_attr(&class, DW_AT_decl_file, &attributes[0]) || !dwarf_attr(&class, DW_AT_decl_line, &attributes[1]) ||
        dwarf_formudata(&attributes[1], &line) != 0 || !(file = file_of(symbols, &attributes[0])))
        return NULL;
    for (unsigned i = 0; i < 2; i++)
        if (!(facts->has & 1u << (DECL_FILE + i)))
            facts->items[DECL_FILE + i] = attributes[i];
    facts->has |= 1u << DECL_FILE | 1u << DECL_LINE;
    struct buf text = {0};
    put_instance(symbols, &class, &text);
    buf_printf(&text, "{lambda at %s:%ju}::%s", path_last(file), (uintmax_t)line, name);
    const char *owned = text.failed ? NULL : symbols_own_name(symbols, text.data);
    buf_fini(&text);
    return owned;
}

/* Name to show: the place of a lambda, the demangled linkage name of C++, else the name in the source. */
static const char *function_name(struct symbols *symbols, Dwarf_Die *die, struct facts *facts)
{
    const char *linkage = linkage_name(facts), *name = lambda_name(symbols, die, facts);
    if (!name && linkage && strncmp(linkage, "_Z", 2) == 0)
        return symbols_own_name(symbols, linkage);
    if (!name && !linkage && facts->has & 1u << SPECIFICATION)
        name = member_function_name(symbols, die);
    if (name)
        return name;
    name = text_of(facts, NAME);
    if (!name || linkage || !strstr(name, LAMBDA))
        return symbols_own_name(symbols, name ? name : linkage);
    struct buf text = {0};
    put_die_name(symbols, die, name, &text);
    const char *owned = text.failed ? NULL : symbols_own_name(symbols, text.data);
    buf_fini(&text);
    return owned;
}

const char *symbols_decl_file(struct symbols *symbols, Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, DW_AT_decl_file, &attribute) ? file_of(symbols, &attribute) : NULL;
}

const char *symbols_dwarf_describe(struct symbols *symbols, Dwarf_Die *die, struct symbols_frame *frame)
{
    struct facts facts;
    Dwarf_Word line = 0;
    read_facts(die, &facts);
    *frame = (struct symbols_frame){.function = function_name(symbols, die, &facts), .die = dwarf_dieoffset(die)};
    if (facts.has & 1u << DECL_FILE)
        frame->decl_file = file_of(symbols, &facts.items[DECL_FILE]);
    if (facts.has & 1u << DECL_LINE && dwarf_formudata(&facts.items[DECL_LINE], &line) == 0 && line <= UINT32_MAX)
        frame->decl_line = (uint32_t)line;
    return linkage_name(&facts);
}

static Dwarf_Word udata(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_attr(die, name, &attribute))
        (void)dwarf_formudata(&attribute, &value);
    return value;
}

/* Where the inlined function die was called: the position inside the frame around it. */
static void set_call_position(struct symbols *symbols, Dwarf_Die *unit, Dwarf_Die *die, struct symbols_frame *outer)
{
    Dwarf_Files *files = NULL;
    size_t n_files = 0;
    outer->line = (uint32_t)udata(die, DW_AT_call_line);
    outer->column = (uint32_t)udata(die, DW_AT_call_column);
    Dwarf_Word file = udata(die, DW_AT_call_file);
    if (dwarf_getsrcfiles(unit, &files, &n_files) == 0 && file < n_files)
        outer->file = own_kept_file(symbols, unit, dwarf_filesrc(files, file, NULL, NULL));
}

/* Child of parent that contains address and is an inlined function or a block that may hold one. */
static bool find_inner(Dwarf_Die *parent, uint64_t address, Dwarf_Die *inner)
{
    if (dwarf_child(parent, inner) != 0)
        return false;
    do {
        int tag = dwarf_tag(inner);
        if ((tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block) && dwarf_haspc(inner, address) == 1)
            return true;
    } while (dwarf_siblingof(inner, inner) == 0);
    return false;
}

bool symbols_dwarf_inner(const struct symbols *symbols, Dwarf_Die *parent, uint64_t vaddr, Dwarf_Die *inner)
{
    return find_inner(parent, vaddr - symbols->dwarf_bias, inner);
}

/* Adds the functions inlined at address into the function die, whose frame is frames[0]; returns the count. */
static size_t add_inlined(struct symbols *symbols, struct dwarf_unit *unit, Dwarf_Die die, uint64_t address,
                          struct symbols_frame *frames)
{
    size_t n = 1;
    Dwarf_Die inner;
    for (unsigned depth = 0; depth < WALK_DEPTH_MAX && n < SYMBOLS_FRAMES_MAX; depth++, die = inner) {
        if (!find_inner(&die, address, &inner))
            break;
        if (dwarf_tag(&inner) != DW_TAG_inlined_subroutine)
            continue;
        set_call_position(symbols, &unit->scopes, &inner, &frames[n - 1]);
        (void)symbols_dwarf_describe(symbols, &inner, &frames[n++]);
    }
    return n;
}

/* For the search of the rows at or before an address. */
struct rows_upto {
    Dwarf_Lines *lines;
    uint64_t address;
};

static bool is_row_upto(const void *context, size_t i)
{
    const struct rows_upto *rows = context;
    Dwarf_Addr at = 0;
    (void)dwarf_lineaddr(dwarf_onesrcline(rows->lines, i), &at);
    return at <= rows->address;
}

size_t symbols_rows_upto(Dwarf_Lines *lines, size_t n, uint64_t address)
{
    return search_where(n, is_row_upto, &(struct rows_upto){lines, address});
}

/* Line of address; rows with line 0 (compiler-made code) take the nearest row before them. */
static void set_position(struct symbols *symbols, Dwarf_Die *unit, uint64_t address, struct symbols_frame *frame)
{
    Dwarf_Lines *lines = NULL;
    size_t n_lines = 0, low = 0;
    if (dwarf_getsrclines(unit, &lines, &n_lines) != 0)
        return;
    low = symbols_rows_upto(lines, n_lines, address);
    for (size_t tries = 0; low-- > 0 && tries < 16; tries++) {
        Dwarf_Line *row = dwarf_onesrcline(lines, low);
        int line = 0, column = 0;
        bool end = false;
        if (dwarf_lineendsequence(row, &end) == 0 && end)
            return;
        if (dwarf_lineno(row, &line) != 0 || line == 0)
            continue;
        (void)dwarf_linecol(row, &column);
        frame->file = own_kept_file(symbols, unit, dwarf_linesrc(row, NULL, NULL));
        frame->line = (uint32_t)line;
        frame->column = (uint32_t)column;
        return;
    }
}

bool symbols_dwarf_at(struct symbols *symbols, uint64_t vaddr, struct dwarf_unit **unit, Dwarf_Die *function,
                      bool *has_function)
{
    uint64_t address = vaddr - symbols->dwarf_bias;
    *unit = find_unit(symbols, address);
    const struct dwarf_range *range = *unit ? find_range((*unit)->functions, (*unit)->n_functions, address) : NULL;
    *has_function = range != NULL;
    if (range)
        *function = range->die;
    return *unit != NULL;
}

bool symbols_dwarf_function(struct symbols *symbols, uint64_t vaddr, Dwarf_Die *function)
{
    uint64_t address = vaddr - symbols->dwarf_bias;
    struct dwarf_unit *unit = find_unit(symbols, address);
    const struct dwarf_range *range = unit ? find_range(unit->functions, unit->n_functions, address) : NULL;
    if (range)
        *function = range->die;
    return range != NULL;
}

size_t symbols_dwarf_lookup(struct symbols *symbols, uint64_t vaddr, struct symbols_frame *frames)
{
    uint64_t address = vaddr - symbols->dwarf_bias;
    struct dwarf_unit *unit = find_unit(symbols, address);
    if (!unit)
        return 0;
    size_t n = 1;
    const struct dwarf_range *range = find_range(unit->functions, unit->n_functions, address);
    frames[0] = (struct symbols_frame){0};
    if (range) {
        Dwarf_Die die = range->die;
        Dwarf_Addr entry = range->low;
        (void)symbols_dwarf_describe(symbols, &die, &frames[0]);
        (void)dwarf_entrypc(&die, &entry);
        frames[0].low_vaddr = entry + symbols->dwarf_bias;
        n = add_inlined(symbols, unit, die, address, frames);
    }
    set_position(symbols, &unit->die, address, &frames[n - 1]);
    return range || frames[0].file ? n : 0;
}

int symbols_returns_pointer(struct symbols *symbols, uint64_t offset)
{
    Dwarf_Die die, type;
    Dwarf_Attribute attribute;
    if (!symbols->dwarf || offset == 0 || !dwarf_offdie(symbols->dwarf, offset, &die))
        return -1;
    if (!dwarf_attr_integrate(&die, DW_AT_type, &attribute))
        return 0;
    if (!dwarf_formref_die(&attribute, &type) || dwarf_peel_type(&type, &type) != 0)
        return -1;
    return dwarf_tag(&type) == DW_TAG_pointer_type;
}

bool symbols_cfa_offset(struct symbols *symbols, uint64_t vaddr, int reg, int64_t *offset)
{
    Dwarf_Addr bias = 0;
    Dwarf_CFI *cfi = dwfl_module_eh_cfi(symbols->module, &bias);
    Dwarf_Frame *frame = NULL;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    bool is_known = false;
    if (!cfi || dwarf_cfi_addrframe(cfi, vaddr - bias, &frame) != 0)
        return false;
    if (dwarf_frame_cfa(frame, &ops, &n_ops) == 0 && n_ops == 1) {
        int base = -1;
        int64_t distance = (int64_t)ops[0].number;
        if (ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
            base = ops[0].atom - DW_OP_breg0;
        } else if (ops[0].atom == DW_OP_bregx) {
            base = (int)ops[0].number;
            distance = (int64_t)ops[0].number2;
        }
        is_known = base == reg;
        if (is_known)
            *offset -= distance;
    }
    free(frame);
    return is_known;
}

/* --- variables with static storage --- */

/* Where variables with static storage are declared, from DWARF; collected in one walk when the first is needed. */

#define SCOPES_DEPTH_MAX 16

static int compare_variables(const void *a, const void *b)
{
    const struct dwarf_variable *x = a, *y = b;
    if (x->is_tls != y->is_tls)
        return x->is_tls ? 1 : -1;
    return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

/* The fixed address of a variable, or its offset in the TLS segment; false when it has neither. */
static bool fixed_address(Dwarf_Die *die, uint64_t *at, bool *is_tls)
{
    Dwarf_Attribute attribute, target;
    Dwarf_Op *ops = NULL;
    size_t n_ops = 0;
    if (!dwarf_attr(die, DW_AT_location, &attribute) || dwarf_getlocation(&attribute, &ops, &n_ops) != 0)
        return false;
    *is_tls = n_ops == 2 && (ops[1].atom == DW_OP_form_tls_address || ops[1].atom == DW_OP_GNU_push_tls_address);
    *at = n_ops ? ops[0].number : 0;
    if (*is_tls)
        return ops[0].atom == DW_OP_const8u || ops[0].atom == DW_OP_const4u || ops[0].atom == DW_OP_addr;
    /* a member of a COMMON block after its first */
    bool is_sum = n_ops == 2 && ops[1].atom == DW_OP_plus_uconst;
    uint64_t more = is_sum ? ops[1].number : 0;
    Dwarf_Addr address = 0;
    if (n_ops != 1 && !is_sum)
        return false;
    if ((ops[0].atom == DW_OP_addrx || ops[0].atom == DW_OP_GNU_addr_index) &&
        dwarf_getlocation_attr(&attribute, ops, &target) == 0 && dwarf_formaddr(&target, &address) == 0)
        *at = address;
    else if (ops[0].atom != DW_OP_addr)
        return false;
    *at += more;
    return *at != 0;
}

/* named: the DIE that the variable is named and declared by, die itself except in a Fortran COMMON block. */
static void add_variable(struct symbols *symbols, Dwarf_Die *die, Dwarf_Die *named)
{
    uint64_t address = 0;
    bool is_tls = false;
    int line = 0;
    if (!fixed_address(die, &address, &is_tls) || !vec_reserve(&symbols->variables, &symbols->cap_variables,
                                                               symbols->n_variables + 1, sizeof *symbols->variables))
        return;
    struct dwarf_variable *variable = &symbols->variables[symbols->n_variables++];
    (void)dwarf_decl_line(named, &line);
    *variable = (struct dwarf_variable){.vaddr = is_tls ? address : address + symbols->dwarf_bias,
                                        .is_tls = is_tls,
                                        .die = *die,
                                        .name = symbols_own_name(symbols, dwarf_diename(named)),
                                        .file = symbols_decl_file(symbols, named),
                                        .line = (uint32_t)line};
}

/* The symbol of a COMMON block begins where its first member does. */
static void add_common(struct symbols *symbols, Dwarf_Die *block)
{
    Dwarf_Die member;
    if (dwarf_child(block, &member) != 0)
        return;
    do {
        if (dwarf_tag(&member) == DW_TAG_variable)
            add_variable(symbols, &member, block);
    } while (dwarf_siblingof(&member, &member) == 0);
}

static void walk(struct symbols *symbols, Dwarf_Die *parent, unsigned depth)
{
    Dwarf_Die die;
    if (depth > SCOPES_DEPTH_MAX || dwarf_child(parent, &die) != 0)
        return;
    do {
        switch (dwarf_tag(&die)) {
        case DW_TAG_variable:
            add_variable(symbols, &die, &die);
            break;
        case DW_TAG_common_block:
            add_common(symbols, &die);
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
            walk(symbols, &die, depth + 1);
            break;
        default:
            break;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* Indexes the variables, thread-local ones after the others, and returns their number. */
static size_t index_variables(struct symbols *symbols)
{
    if (!symbols->variables_indexed) {
        symbols->variables_indexed = true;
        for (size_t i = 0; i < symbols->n_units; i++)
            walk(symbols, &symbols->units[i].scopes, 0);
        if (symbols->n_variables)
            qsort(symbols->variables, symbols->n_variables, sizeof *symbols->variables, compare_variables);
    }
    return symbols->n_variables;
}

/* For the search of the variables that begin at or before vaddr. */
struct variables_upto {
    const struct dwarf_variable *variables;
    uint64_t vaddr;
    bool is_tls;
};

static bool is_variable_upto(const void *context, size_t i)
{
    const struct variables_upto *upto = context;
    const struct dwarf_variable *variable = &upto->variables[i];
    return variable->is_tls == upto->is_tls ? variable->vaddr <= upto->vaddr : !variable->is_tls;
}

const struct dwarf_variable *symbols_dwarf_variable_upto(struct symbols *symbols, bool tls, uint64_t vaddr)
{
    size_t n = index_variables(symbols);
    n = search_where(n, is_variable_upto, &(struct variables_upto){symbols->variables, vaddr, tls});
    return n > 0 && symbols->variables[n - 1].is_tls == tls ? &symbols->variables[n - 1] : NULL;
}

const struct dwarf_variable *symbols_dwarf_variable(struct symbols *symbols, uint64_t vaddr)
{
    if (index_variables(symbols) == 0)
        return NULL;
    struct dwarf_variable key = {.vaddr = vaddr};
    return bsearch(&key, symbols->variables, symbols->n_variables, sizeof key, compare_variables);
}
