/* SPDX-License-Identifier: BSD-3-Clause */
/* A small parser of assignment statements that works backwards from the call: see assign-name.h. */
#include "structure/names/assign-name.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define ANONYMOUS "(anonymous namespace)"

/* A piece of the statement: [begin, end). */
struct span {
    const char *begin, *end;
};

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

static struct span trim(struct span s)
{
    while (s.begin < s.end && isspace((unsigned char)*s.begin))
        s.begin++;
    while (s.end > s.begin && isspace((unsigned char)s.end[-1]))
        s.end--;
    return s;
}

static bool span_is(struct span s, const char *text)
{
    return (size_t)(s.end - s.begin) == strlen(text) && strncmp(s.begin, text, strlen(text)) == 0;
}

static const char *skip_blanks_back(const char *begin, const char *p)
{
    while (p > begin && isspace((unsigned char)p[-1]))
        p--;
    return p;
}

/* Start of the bracketed text that ends at p (p[-1] is the closing bracket); NULL when it is not balanced. */
static const char *skip_brackets_back(const char *begin, const char *p)
{
    int depth = 0;
    while (p > begin) {
        char c = *--p;
        depth += c == ')' || c == ']';
        depth -= c == '(' || c == '[';
        if (depth == 0)
            return p;
    }
    return NULL;
}

/* Start of the operand that ends at end: names joined by . -> ::, subscripts and parentheses included. */
static const char *operand_start(const char *begin, const char *end)
{
    const char *p = skip_blanks_back(begin, end);
    for (;;) {
        while (p > begin && (p[-1] == ']' || p[-1] == ')')) {
            const char *open = skip_brackets_back(begin, p);
            if (!open)
                return p;
            p = open;
        }
        while (p > begin && is_word(p[-1]))
            p--;
        if (p - begin >= 2 && p[-1] == '>' && p[-2] == '-')
            p -= 2;
        else if (p - begin >= 2 && p[-1] == ':' && p[-2] == ':')
            p -= 2;
        else if (p > begin && p[-1] == '.')
            p -= 1;
        else
            return p;
    }
}

static bool copy_span(struct span s, char *name, size_t size)
{
    size_t len = 0;
    s = trim(s);
    for (const char *p = s.begin; p < s.end && len + 1 < size; p++)
        if (!isspace((unsigned char)*p))
            name[len++] = *p;
    name[len] = 0;
    return len > 0 && !isdigit((unsigned char)name[0]);
}

/* Name on the left of an assignment: the last operand, with its * unless a type stands before that. */
static bool left_side(struct span left, char *name, size_t size)
{
    left = trim(left);
    const char *start = operand_start(left.begin, left.end);
    const char *before = skip_blanks_back(left.begin, start);
    const char *star = before;
    while (star > left.begin && (star[-1] == '*' || isspace((unsigned char)star[-1])))
        star--;
    if (star == left.begin && before > left.begin && before[-1] == '*')
        start = left.begin;
    return start < left.end && copy_span((struct span){start, left.end}, name, size);
}

static bool is_assignment(const char *begin, const char *p)
{
    return *p == '=' && p[1] != '=' && (p == begin || !strchr("=!<>+-*/%&|^", p[-1]));
}

static bool is_keyword(struct span s)
{
    static const char *const words[] = {"return", "if",     "while", "for",  "switch", "sizeof",
                                        "new",    "delete", "throw", "else", "const",  "static",
                                        "case",   "goto",   "call",  "CALL", "Call"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (span_is(s, words[i]))
            return true;
    return false;
}

static struct span last_word(const char *begin, const char *end)
{
    const char *stop = skip_blanks_back(begin, end), *start = stop;
    while (start > begin && is_word(start[-1]))
        start--;
    return (struct span){start, stop};
}

/* The call or declaration whose opening parenthesis is at open: the object of x.method( and the variable of T x(. */
static bool name_before_parenthesis(const char *begin, const char *open, char *name, size_t size)
{
    struct span word = last_word(begin, open);
    if (word.begin == word.end || is_keyword(word))
        return false;
    const char *before = skip_blanks_back(begin, word.begin);
    size_t dot = before > begin && before[-1] == '.'                             ? 1
                 : before - begin >= 2 && before[-1] == '>' && before[-2] == '-' ? 2
                                                                                 : 0;
    if (dot) {
        const char *end = before - dot;
        return copy_span((struct span){operand_start(begin, end), end}, name, size);
    }
    struct span type = last_word(begin, before);
    bool declared = before > begin && (before[-1] == '>' || before[-1] == '*' || before[-1] == '&' ||
                                       (type.begin < type.end && !is_keyword(type) && word.begin > before));
    return declared && copy_span(word, name, size);
}

/* Start of the part of the statement that contains at: after the last ; { or } outside parentheses, and after ?: and
 * commas. */
static const char *part_start(const char *begin, const char *at)
{
    while (at > begin && !strchr(";{}", at[-1]))
        at--;
    return at;
}

/* Goes left from the call, out of casts and parentheses, to an assignment or a construct that names an object. */
static enum assign_kind name_left_of(const char *begin, const char *call, char *name, size_t size)
{
    begin = part_start(begin, call);
    for (const char *p = call; p > begin;) {
        char c = p[-1];
        if (c == ')' || c == ']') {
            const char *open = skip_brackets_back(begin, p);
            if (!open)
                return ASSIGN_NONE;
            p = open;
            continue;
        }
        p--;
        if (is_assignment(begin, p)) {
            const char *left = p;
            int depth = 0;
            while (left > begin && !(depth == 0 && strchr("(,", left[-1]))) {
                depth += left[-1] == ')' || left[-1] == ']';
                depth -= left[-1] == '(' || left[-1] == '[';
                left--;
            }
            if (left > begin && left[-1] == ',') /* further declarators repeat their * */
                left += strspn(left, " *");
            return left_side((struct span){left, p}, name, size) ? ASSIGN_NAME : ASSIGN_NONE;
        }
        if (c == '(' && name_before_parenthesis(begin, p, name, size))
            return ASSIGN_NAME;
    }
    struct span first = trim((struct span){begin, call});
    return first.end - first.begin >= 6 && strncmp(first.begin, "return", 6) == 0 ? ASSIGN_RETURN : ASSIGN_NONE;
}

/* The occurrence of word, as a whole word, nearest to offset; NULL when there is none. */
static const char *find_word(const char *statement, const char *word, size_t offset)
{
    const char *best = NULL, *target = statement + offset;
    size_t len = strlen(word);
    for (const char *p = statement; len && (p = strstr(p, word)); p += len) {
        if ((p > statement && is_word(p[-1])) || is_word(p[len]))
            continue;
        size_t distance = (size_t)(p < target ? target - p : p - target);
        if (!best || distance < (size_t)(best < target ? target - best : best - target))
            best = p;
    }
    return best;
}

/* True when an argument list follows, perhaps after template arguments. */
static bool is_called(const char *after)
{
    int depth = 0;
    for (; *after && (depth > 0 || *after == '<' || isspace((unsigned char)*after)); after++) {
        depth += *after == '<';
        depth -= *after == '>';
    }
    return *after == '(';
}

/* Start of the declarator that contains at: after the last comma before it that is not in brackets. */
static const char *declarator_start(const char *begin, const char *at)
{
    const char *start = begin;
    int depth = 0;
    for (const char *p = begin; p < at && *p; p++) {
        depth += *p == '(' || *p == '[' || *p == '<';
        depth -= *p == ')' || *p == ']' || (*p == '>' && p > begin && p[-1] != '-');
        if (*p == ',' && depth == 0)
            start = p + 1;
    }
    return start;
}

/* The name that a declarator after a comma begins with; false when it begins with something else. */
static bool name_of_declarator(const char *p, char *name, size_t size)
{
    p += strspn(p, " \t*&");
    const char *end = p;
    while (is_word(*end))
        end++;
    return strchr("({=[,;", end[strspn(end, " \t")]) && copy_span((struct span){p, end}, name, size);
}

/* What follows the "::" of a declaration of Fortran, "real(8), dimension(n) :: a, b"; NULL: it is none. */
static const char *behind_attributes(const char *statement)
{
    static const char *const types[] = {"real", "integer", "logical", "complex", "character", "double", "type"};
    size_t len = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types && !len; i++)
        len = strncasecmp(statement, types[i], strlen(types[i])) == 0 ? strlen(types[i]) : 0;
    if (!len || !statement[len] || !strchr(" ,(*:\t", statement[len]) || strchr(statement, ';'))
        return NULL;
    int depth = 0;
    for (const char *p = statement + len; *p && *p != '='; p++) {
        depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (depth == 0 && p[0] == ':' && p[1] == ':')
            return p + 2;
    }
    return NULL;
}

/* The arrays that such a declaration allocates at its line, "a|b": which of them a block is, is not known. */
static bool name_of_declared(const char *p, char *name, size_t size)
{
    size_t n = 0;
    for (int i = 0;; i++, p++) {
        const char *end = p += strspn(p, " \t");
        while (is_word(*end))
            end++;
        if (end == p || i == 3 || n + (size_t)(end - p) + 2 > size)
            return false;
        n += (size_t)snprintf(name + n, size - n, "%s%.*s", i ? "|" : "", (int)(end - p), p);
        p = end;
        for (int depth = 0; *p && *p != '!' && (*p != ',' || depth > 0); p++)
            depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (*p != ',')
            return true;
    }
}

/* A statement in which the callee's name does not appear: a container's declaration, method or operator. */
static enum assign_kind name_without_callee(const char *statement, size_t offset, char *name, size_t size)
{
    const char *begin = part_start(statement, statement + offset);
    const char *end = begin + strcspn(begin, ";{}"), *own = declarator_start(begin, statement + offset);
    if (own > begin && own < end && name_of_declarator(own, name, size))
        return ASSIGN_NAME;
    begin = own < end ? own : begin;
    for (const char *p = begin; p < end; p++) {
        if (is_assignment(begin, p))
            return left_side((struct span){begin, p}, name, size) ? ASSIGN_NAME : ASSIGN_NONE;
        if (*p == '(' && name_before_parenthesis(begin, p, name, size))
            return ASSIGN_NAME;
    }
    if (strncmp(begin, "return", 6) == 0)
        return ASSIGN_RETURN;
    struct span word = last_word(begin, end);
    const char *before = skip_blanks_back(begin, word.begin);
    if (word.begin < word.end && before > begin && (before[-1] == '>' || is_word(before[-1])) && before < word.begin)
        return copy_span(word, name, size) ? ASSIGN_NAME : ASSIGN_NONE;
    return ASSIGN_NONE;
}

/* The operand of operator[]: gcc points at its closing bracket, clang at its start, where several may begin: then it is
 * the longest. */
static bool name_of_subscript(const char *statement, size_t offset, char *name, size_t size)
{
    const char *at = statement + offset, *end = at;
    if (*at == ']')
        return copy_span((struct span){operand_start(statement, at + 1), at + 1}, name, size);
    for (const char *p = at; *p && !strchr(";{}", *p); p++)
        if (*p == ']' && operand_start(statement, p + 1) == at)
            end = p + 1;
    return end > at && copy_span((struct span){at, end}, name, size);
}

enum assign_kind assign_name_find(const char *statement, const char *callee, size_t offset, char *name, size_t size)
{
    while (*statement && isspace((unsigned char)*statement) && offset > 0) {
        statement++;
        offset--;
    }
    if (assign_name_fortran(statement, 0, name, size))
        return ASSIGN_NAME;
    const char *declared = behind_attributes(statement);
    if (declared)
        return name_of_declared(declared, name, size) ? ASSIGN_NAME : ASSIGN_NONE;
    if (callee && strcmp(callee, "operator[]") == 0 && name_of_subscript(statement, offset, name, size))
        return ASSIGN_NAME;
    const char *word = callee && strncmp(callee, "operator new", 12) == 0 ? "new" : callee;
    const char *call = find_word(statement, word ? word : "new", offset);
    if (!call || (word && strcmp(word, "new") != 0 && !is_called(call + strlen(word))))
        return name_without_callee(statement, offset, name, size);
    const char *start = operand_start(statement, call + strlen(word ? word : ""));
    enum assign_kind kind = name_left_of(statement, start < call ? start : call, name, size);
    const char *dot = call > start && call[-1] == '.' ? call - 1 : call - start > 1 ? call - 2 : NULL;
    bool method = dot && (*dot == '.' || (call - start > 2 && dot[0] == '-' && dot[1] == '>'));
    if (kind == ASSIGN_NONE && method && copy_span((struct span){start, dot}, name, size))
        return ASSIGN_NAME;
    return kind;
}

/* Whether Fortran's allocate statement may begin at p, rather than a call of a function or method of that name: only a
 * label, another statement, or a condition may stand before it. */
static bool begins_statement(const char *statement, const char *p)
{
    const char *first = p;
    while (first > statement && first[-1] != ';')
        first--;
    first += strspn(first, " \t");
    const char *before = skip_blanks_back(first < p ? first : p, p);
    if (before <= first)
        return true;
    if (before[-1] == ')')
        return strncasecmp(first, "if", 2) == 0;
    return first + strspn(first, "0123456789") == before;
}

/* Returns what follows the "(" of the next allocate statement at or after p; NULL when there is none. */
static const char *next_allocate(const char *statement, const char *p)
{
    for (; (p = strcasestr(p, "allocate")); p += 8) {
        const char *open = p + 8 + strspn(p + 8, " \t");
        if ((p == statement || !is_word(p[-1])) && *open == '(' && begins_statement(statement, p))
            return open + 1;
    }
    return NULL;
}

/* End of one item in a list: at its comma or closing bracket. *type_end is set to the end of a "type ::" in it. */
static const char *list_item_end(const char *p, const char **type_end)
{
    for (int depth = 0; *p && (depth > 0 || (*p != ',' && *p != ')')); p++) {
        depth += *p == '(';
        depth -= *p == ')';
        if (depth == 0 && p[0] == ':' && p[1] == ':')
            *type_end = p + 2;
    }
    return p;
}

/* Copies an object without its own shape: "many(i)%rho(n)" is "many(:)%rho". */
static bool copy_object(struct span object, char *name, size_t size)
{
    size_t len = 0;
    int depth = 0;
    bool has_subscript = false;
    for (const char *p = object.begin; p < object.end && len + 4 < size; p++) {
        depth += *p == '(';
        depth -= *p == ')';
        has_subscript |= *p == ')';
        if (depth > 0 || *p == ')' || isspace((unsigned char)*p) || *p == '&')
            continue;
        if (*p == '%' && has_subscript) {
            memcpy(name + len, "(:)", 3);
            len += 3;
        }
        has_subscript = false;
        name[len++] = *p;
    }
    name[len] = 0;
    return len > 0 && !isdigit((unsigned char)name[0]);
}

bool assign_name_fortran(const char *statement, size_t n, char *name, size_t size)
{
    for (const char *p = statement; (p = next_allocate(statement, p));) {
        bool is_last = false;
        while (!is_last) {
            const char *type_end = NULL, *end = list_item_end(p, &type_end);
            struct span object = {type_end ? type_end : p, end};
            bool is_option = memchr(object.begin, '=', (size_t)(end - object.begin));
            if (!is_option && n-- == 0)
                return copy_object(object, name, size);
            is_last = *end != ',';
            p = end + (*end != 0);
        }
    }
    return false;
}

bool assign_name_is_same(const char *a, const char *b)
{
    const char *scope = strstr(a, "::");
    for (a = scope ? scope + 2 : a; *a && *b && tolower((unsigned char)*a) == tolower((unsigned char)*b); a++)
        b++;
    return *a == 0 && *b == 0;
}

/* Whether the text up to the end of the statement is the variable, perhaps after casts. */
static bool is_operand(const char *text, const char *variable)
{
    const char *end = text + strcspn(text, ";"), *start = operand_start(text, end);
    size_t len = strlen(variable);
    if (start < end && *start == '(')
        start++;
    return (size_t)(end - start) >= len && strncmp(start, variable, len) == 0 && !is_word(start[len]) &&
           start[len] != '-' && start[len] != '.' && start[len] != '[';
}

bool assign_name_returns(const char *line, const char *variable)
{
    const char *p = line + strspn(line, " \t");
    return strncmp(p, "return", 6) == 0 && !is_word(p[6]) && is_operand(p + 6, variable);
}

bool assign_name_stores(const char *line, const char *variable, char *pointer, size_t size)
{
    const char *p = line + strspn(line, " \t");
    size_t len = 0;
    while (*p == '*' && is_word(p[1 + len]))
        len++;
    const char *sign = p + 1 + len + strspn(len ? p + 1 + len : "", " \t");
    if (len == 0 || len >= size || *sign != '=' || sign[1] == '=' || !is_operand(sign + 1, variable))
        return false;
    memcpy(pointer, p + 1, len);
    pointer[len] = 0;
    return true;
}

static bool is_after_operator(const char *readable, const char *p)
{
    return p - readable >= 8 && strncmp(p - 8, "operator", 8) == 0;
}

/* The end of the literal that begins at p; p itself when none does. A ' between digits is a separator. */
static const char *skip_literal(const char *begin, const char *p)
{
    const char *word = p;
    while (word > begin && is_word(word[-1]))
        word--;
    if ((*p != '"' && *p != '\'') || (*p == '\'' && isdigit((unsigned char)*word)))
        return p;
    if (*p == '"' && p > word && p[-1] == 'R' && strchr(p, '(')) { /* R"end(...)end" */
        char end[20];
        size_t len = strcspn(p + 1, "(");
        if (len < sizeof end - 2) {
            (void)snprintf(end, sizeof end, ")%.*s\"", (int)len, p + 1);
            const char *found = strstr(p, end);
            return found ? found + strlen(end) : p + strlen(p);
        }
    }
    for (const char *q = p + 1; *q; q++) {
        if (*q == *p)
            return q + 1;
        q += *q == '\\' && q[1];
    }
    return p + strlen(p);
}

/* The end of the template arguments that begin with the < at p; p itself when it is a comparison. Template arguments
 * stand next to their name, hold types and constants, and are not followed by an operand. */
static const char *skip_template(const char *begin, const char *p)
{
    int depth = 0;
    if (*p != '<' || p == begin || !is_word(p[-1]))
        return p;
    for (const char *q = p; *q; q++) {
        depth += (*q == '<') - (*q == '>');
        if (depth == 0) {
            const char *next = q + 1 + strspn(q + 1, " \t");
            return *next && strchr("({:,)>;", *next) ? q + 1 : p;
        }
        bool is_shift = q[0] == '<' && q[1] == '<';
        if (is_shift || (!is_word(*q) && !strchr("<>:,*&[]() \t", *q)))
            return p;
    }
    return p;
}

/* The '(' of the call of callee that begins at at, after any template arguments; NULL when it is no call. */
static const char *open_of_call(const char *statement, const char *at, const char *callee)
{
    const char *p = at + strlen(callee);
    if ((at > statement && is_word(at[-1])) || is_word(*p))
        return NULL;
    p = skip_template(statement, p);
    p += strspn(p, " \t");
    return *p == '(' ? p : NULL;
}

/* The end of the character at p, or of the whole literal or the template arguments that begin there. */
static const char *next_piece(const char *begin, const char *p)
{
    const char *end = skip_literal(begin, p);
    end = end == p ? skip_template(begin, p) : end;
    return end == p ? p + 1 : end;
}

bool assign_name_argument(const char *statement, const char *callee, size_t offset, size_t index, char *argument,
                          size_t size)
{
    const char *open = NULL;
    size_t best = SIZE_MAX, n = 0, len;
    int depth = 0;
    for (const char *p = statement; *callee && (p = strstr(p, callee)); p++) {
        size_t at = (size_t)(p - statement), distance = at > offset ? at - offset : offset - at;
        const char *found = open_of_call(statement, p, callee);
        if (found && distance < best) {
            best = distance;
            open = found;
        }
    }
    struct span span = {open ? open + 1 : NULL, NULL};
    for (const char *p = span.begin; p && *p; p = next_piece(span.begin, p)) {
        bool is_end = depth == 0 && (*p == ',' || *p == ')');
        if (is_end && n == index) {
            span.end = p;
            break;
        }
        if (is_end && *p == ')')
            break;
        n += is_end;
        if (is_end)
            span.begin = p + 1;
        depth += (strchr("([{", *p) != NULL) - (strchr(")]}", *p) != NULL);
    }
    if (!span.end)
        return false;
    span = trim(span);
    len = (size_t)(span.end - span.begin);
    if (len == 0 || len >= size)
        return false;
    memcpy(argument, span.begin, len);
    argument[len] = 0;
    return true;
}

/* Start of the Fortran object that ends at end: names joined by %, with subscripts. */
static const char *fortran_object_start(const char *begin, const char *end)
{
    const char *p = end;
    do {
        p -= p < end;
        while (p && p > begin && p[-1] == ')')
            p = skip_brackets_back(begin, p);
        while (p && p > begin && is_word(p[-1]))
            p--;
    } while (p && p > begin && p[-1] == '%');
    return p ? p : end;
}

bool assign_name_passed_object(const char *statement, const char *procedure, size_t offset, char *object, size_t size)
{
    size_t len = strlen(procedure);
    struct span best = {NULL, NULL};
    bool has_procedure = strcasestr(statement, procedure);
    for (const char *p = strchr(statement, '%'); p; p = strchr(p + 1, '%')) {
        const char *start = fortran_object_start(statement, p), *end = p + 1;
        struct span before = last_word(statement, start);
        while (is_word(*end))
            end++;
        bool is_same = (size_t)(end - p - 1) == len && strncasecmp(p + 1, procedure, len) == 0;
        bool is_call = before.end - before.begin == 4 && strncasecmp(before.begin, "call", 4) == 0 && *end != '%';
        /* a binding may have a name of its own */
        if ((is_same || (!has_procedure && is_call)) && (!best.end || p < statement + offset))
            best = (struct span){start, p + 1};
    }
    if (!best.end || !copy_object(best, object, size))
        return false;
    object[strlen(object) - 1] = 0;
    return *object;
}

/* The last character of a part of a name that begins at p and has parentheses: "{lambda(int)#1}", or the parameters of
 * a function with a local one, "(int)" of "f(int)::Local::g()"; p itself when none does. */
static const char *skip_part(const char *p)
{
    const char *end = p;
    int depth = 0;
    if (*p != '{' && *p != '(')
        return p;
    for (; *end; end++) {
        depth += (*end == '(' || *end == '{') - (*end == ')' || *end == '}');
        if (depth == 0)
            break;
    }
    if (*p == '{')
        return *end ? end : end - 1;
    if (*end && strncmp(end + 1, " const", strlen(" const")) == 0)
        end += strlen(" const");
    return *end && strncmp(end + 1, "::", 2) == 0 ? end : p;
}

const char *assign_name_parameters(const char *readable)
{
    int depth = 0;
    const char *p = readable;
    for (; *p; p++) {
        if (*p != '<' && *p != '>' && *p != '(' && *p != '{')
            continue;
        bool is_operator = is_after_operator(readable, p);
        if (*p == '<' && !is_operator)
            depth++;
        else if (*p == '>' && depth > 0)
            depth--;
        else if (*p == '(' && strncmp(p, ANONYMOUS, strlen(ANONYMOUS)) == 0)
            p += strlen(ANONYMOUS) - 1;
        else if (p > readable && depth == 0 && !is_operator && skip_part(p) > p)
            p = skip_part(p);
        else if (*p == '(' && p > readable && depth == 0 && !is_operator)
            break;
    }
    return p;
}

const char *assign_name_start(const char *readable)
{
    int depth = 0;
    const char *start = readable, *end = assign_name_parameters(readable);
    if (*end != '(')
        return readable; /* as "0x302f [app]": no function of C++ */
    for (const char *p = readable; p < end; p++) {
        bool is_operator = p - start >= 8 && p[-1] == 'r' && strncmp(p - 8, "operator", 8) == 0;
        if (*p == '(' && strncmp(p, ANONYMOUS, strlen(ANONYMOUS)) == 0)
            p += strlen(ANONYMOUS) - 1;
        else if (is_operator && depth == 0)
            break; /* its own name may have blanks */
        else if (*p == '<' || *p == '(' || *p == '{')
            depth++;
        else if (*p == '>' || *p == ')' || *p == '}')
            depth -= depth > 0;
        else if (*p == ' ' && depth == 0)
            start = p + 1;
    }
    return start;
}

const char *assign_name_function(const char *readable, char *qualified, size_t size)
{
    size_t len = 0;
    int depth = 0;
    for (const char *p = readable, *end = assign_name_parameters(readable); p < end && len + 1 < size; p++) {
        bool is_operator = len >= 8 && strncmp(qualified + len - 8, "operator", 8) == 0;
        size_t n_anonymous = strncmp(p, ANONYMOUS, strlen(ANONYMOUS)) == 0 ? strlen(ANONYMOUS) : 0;
        if (*p == '<' && !is_operator)
            depth++;
        else if (*p == '>' && depth > 0)
            depth--;
        else if (depth == 0 && n_anonymous > 0 && len + n_anonymous < size) {
            memcpy(qualified + len, p, n_anonymous);
            len += n_anonymous;
            p += n_anonymous - 1;
        } else if (depth == 0 && !is_operator && skip_part(p) > p) {
            size_t n_part = *p == '{' ? (size_t)(skip_part(p) - p) + 1 : 0;
            n_part = n_part < size - 1 - len ? n_part : size - 1 - len;
            memcpy(qualified + len, p, n_part);
            len += n_part;
            p = skip_part(p);
        } else if (depth == 0 && *p == ' ' && !is_operator)
            len = 0; /* what came before was the return type */
        else if (depth == 0)
            qualified[len++] = *p;
    }
    qualified[len] = 0;
    const char *last = qualified;
    for (char *p = qualified; (p = strstr(p, "::")); last = p)
        p += 2;
    return last;
}
