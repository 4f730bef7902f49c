/* SPDX-License-Identifier: BSD-3-Clause */
/* The types of one load module from its DWARF: fields with offsets and sizes, bit fields, arrays with strides, unions,
 * base classes, derived types and array descriptors of Fortran. Types are read when first needed and kept until
 * symbols_close; their number is bounded, and a walk over them ends whatever a hostile file says. Ordinary code. */
#ifndef LOCUS_STRUCTURE_TYPES_TYPES_H
#define LOCUS_STRUCTURE_TYPES_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "structure/elf/symbols.h"

#define TYPES_MAX 2000000     /* types of one module; all further ones are unknown */
#define TYPES_FIELDS_MAX 8192 /* fields of one structure, dimensions included */
#define TYPES_DEPTH_MAX 32    /* steps from a type to what it is made of */

enum type_kind {
    TYPE_UNKNOWN = 0, /* also void */
    TYPE_BASE,        /* numbers, characters, strings of Fortran */
    TYPE_POINTER,     /* pointers and references; target: what they point to */
    TYPE_ARRAY,       /* target: of an element */
    TYPE_STRUCT,      /* structures, classes, derived types */
    TYPE_UNION,
    TYPE_ENUM,
    TYPE_FUNCTION,
    TYPE_ALIAS, /* typedef; target: what it stands for */
    TYPE_KINDS
};

#define TYPE_IS_CLASS 1u      /* STRUCT: declared as a class */
#define TYPE_IS_INCOMPLETE 2u /* declared only, and defined nowhere in the module */
#define TYPE_IS_DYNAMIC 4u    /* ARRAY: the data lie where a descriptor points (allocatable, assumed shape) */
#define TYPE_IS_VARIABLE 8u   /* ARRAY: some dimension is only known at run time, or left open */
#define TYPE_IS_REFERENCE 16u /* POINTER: a reference of C++ */
#define TYPE_IS_TRUNCATED 32u /* has more fields than are kept */
#define TYPE_IS_FORTRAN 64u   /* from a unit in Fortran */
#define TYPE_IS_C 128u        /* from a unit in C: structures are named with their keyword */
#define TYPE_IS_FLOAT 256u    /* BASE: a floating-point number */

#define FIELD_IS_BASE 1u       /* a base class */
#define FIELD_IS_ARTIFICIAL 2u /* made by the compiler, e.g. the pointer to virtual functions */
#define FIELD_IS_FLEXIBLE 4u   /* the last field, an array without length: it takes the rest of the block */

/* Strings are borrowed until symbols_close; name NULL: without one. */
struct type_field {
    const char *name;
    uint32_t type;         /* id */
    uint32_t flags;        /* FIELD_IS_* */
    uint64_t offset_bytes; /* of the field, or of the first byte that contains a bit of it */
    uint32_t bit_offset;   /* bit fields: from the start of the structure, little-endian numbering ... */
    uint32_t bit_size;     /* ... and width; 0: no bit field */
};

/* One dimension of an array, outermost first as the compiler lists them (Fortran: first index first). */
struct type_dimension {
    uint64_t count;        /* 0: not known before run time */
    uint64_t stride_bytes; /* 0: elements lie side by side */
    int64_t lower;         /* first index */
};

struct type {
    enum type_kind kind;
    uint32_t flags;            /* TYPE_IS_* */
    const char *name;          /* as declared, without qualifiers of scope */
    uint64_t size_bytes;       /* 0: not known */
    uint32_t target;           /* id, 0 = void or unknown */
    struct type_field *fields; /* [n_fields] as declared */
    size_t n_fields;
    struct type_dimension *dimensions; /* [n_dimensions] */
    size_t n_dimensions;
    const char *decl_file; /* NULL: not known */
    uint32_t decl_line;
    uint64_t die; /* offset of its DIE in the section that holds it */
};

/* The type with this id, complete; never NULL: id 0 is TYPE_UNKNOWN. Valid until symbols_close. */
const struct type *types_get(struct symbols *symbols, uint32_t id);

/* Id of the type that an alias stands for, through all aliases; of the type itself if it is none. */
uint32_t types_strip(struct symbols *symbols, uint32_t id);

/* Size in bytes of an object of the type, through aliases; 0 when it is not known. */
uint64_t types_size(struct symbols *symbols, uint32_t id);

/* The type of an array's elements, else the type itself; through aliases. */
uint32_t types_element(struct symbols *symbols, uint32_t id);

/* Writes the type as its language spells it: "double *", "struct particle", "int [3][4]". Returns text [size_bytes]. */
const char *types_spell(struct symbols *symbols, uint32_t id, char *text, size_t size_bytes);

/* Id of the type with this name ("double", "struct particle", "ns::particle", "unsigned long"), as code at vaddr sees
 * it, else anywhere in the module; 0 when there is none. Pointer types (a trailing "*") are not found: 0. */
uint32_t types_find(struct symbols *symbols, uint64_t vaddr, const char *name);

/* Type of an expression of names joined by . -> % and subscripts ("s->rows[]", "grid%cell", "*out", "this->data"), as
 * code at vaddr sees them; variables and members have the type that they are declared with. 0 when it is not known. */
uint32_t types_of_expression(struct symbols *symbols, uint64_t vaddr, const char *expression);

/* The type argument of the template that a structure was made from (std::vector<T>: T): the one that the C++ library
 * calls _Tp (std::map<K, T>: T), else the first; 0 when it is no template. */
uint32_t types_template_argument(struct symbols *symbols, uint32_t id);

/* The same for the class that the function at this DIE is a member of (std::allocator<T>::allocate: T). */
uint32_t types_template_of_function(struct symbols *symbols, uint64_t die);

/* Type of the variable with static storage that holds vaddr, with its address and (in a COMMON block, where several
 * variables share a symbol) its name; 0 when DWARF has none there. tls: vaddr is an offset in the TLS segment. */
uint32_t types_of_static(struct symbols *symbols, uint64_t vaddr, bool tls, uint64_t *start, const char **name);

/* --- from an offset in an object to the field that lies there --- */

/* Spelled as one would write it: ".vel.x", "[].mass". */

#define TYPES_PATH_BYTES 256

enum spot_kind {
    SPOT_NONE = 0, /* the type says nothing about this offset */
    SPOT_WHOLE,    /* the object is a scalar: path is "" */
    SPOT_FIELD,    /* in a field */
    SPOT_PADDING   /* between fields: path ends in "<padding>" */
};

/* One field of a structure, as far as an offset determines it: alternatives of a union and neighbouring bit fields
 * share an offset. */
struct type_spot {
    enum spot_kind kind;
    char path[TYPES_PATH_BYTES]; /* relative to the object, e.g. ".vel.x", ".<i|d>" where fields share a place */
    uint64_t offset_bytes;       /* of the field in the structure: subscripts count as 0 */
    uint64_t size_bytes;         /* of the field, of all its elements together */
    uint32_t type;               /* of what lies there: of a scalar, or of the first field where several share the
                                  * place */
};

/* The field at offset_bytes of an object of the type. Any element of an array is written "[]". text: source code of the
 * access, or NULL; if several fields share a place, those that it mentions are meant. */
void types_spot(struct symbols *symbols, uint32_t id, uint64_t offset_bytes, const char *text, struct type_spot *spot);

/* The same in a block of block_bytes (0: not known) whose elements are of the type: an array of structures, or one
 * structure whose last field takes the rest. The path begins with "[]" if the block holds several elements.
 * header_bytes lie before the first element (array cookies of C++). */
void types_spot_in_block(struct symbols *symbols, uint32_t id, uint64_t block_bytes, uint64_t header_bytes,
                         uint64_t offset_bytes, const char *text, struct type_spot *spot);

/* Whether the structure's last field is open-ended; *offset_bytes gets its offset then. */
bool types_flexible(struct symbols *symbols, uint32_t id, uint64_t *offset_bytes);

#endif
