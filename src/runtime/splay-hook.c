/* SPDX-License-Identifier: BSD-3-Clause */
/* Splay trees of live blocks by their start (Sleator and Tarjan, top-down form). A search moves what it found to the
 * root, so the block that was just allocated is found at once when it is freed; and for that reason the handler never
 * walks them. Runs inside the program's malloc under the lock of the tree's shard. */
#include "runtime/objmap-internal.h"

/* One step down on the left (start is smaller): returns the next node, after a rotation when two steps go the same
 * way; NULL at the end. */
static struct objmap_record *rotate_right(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *left = root->left;
    if (left && start < left->block.start) {
        root->left = left->right;
        left->right = root;
        return left;
    }
    return root;
}

static struct objmap_record *rotate_left(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *right = root->right;
    if (right && start > right->block.start) {
        root->right = right->left;
        right->left = root;
        return right;
    }
    return root;
}

/* Reorganises the tree so that its root is the record of start or a neighbour of it. */
static struct objmap_record *splay(struct objmap_record *root, uintptr_t start)
{
    struct objmap_record *smaller = NULL, *larger = NULL;
    struct objmap_record **smaller_end = &smaller, **larger_end = &larger;
    for (;;) {
        if (start < root->block.start) {
            root = rotate_right(root, start);
            if (!root->left)
                break;
            *larger_end = root;
            larger_end = &root->left;
            root = root->left;
        } else if (start > root->block.start) {
            root = rotate_left(root, start);
            if (!root->right)
                break;
            *smaller_end = root;
            smaller_end = &root->right;
            root = root->right;
        } else {
            break;
        }
    }
    *smaller_end = root->left;
    *larger_end = root->right;
    root->left = smaller;
    root->right = larger;
    return root;
}

struct objmap_record *objmap_splay_insert_hook(struct objmap_record **root, struct objmap_record *record)
{
    struct objmap_record *old = *root ? splay(*root, record->block.start) : NULL;
    *root = record;
    record->left = NULL;
    record->right = NULL;
    if (!old)
        return NULL;
    record->left = old->left;
    record->right = old->right;
    if (old->block.start == record->block.start)
        return old;
    if (old->block.start < record->block.start) {
        record->left = old;
        old->right = NULL;
    } else {
        record->right = old;
        old->left = NULL;
    }
    return NULL;
}

struct objmap_record *objmap_splay_find_hook(struct objmap_record **root, uintptr_t start)
{
    if (!*root)
        return NULL;
    *root = splay(*root, start);
    return (*root)->block.start == start ? *root : NULL;
}

struct objmap_record *objmap_splay_remove_hook(struct objmap_record **root, uintptr_t start)
{
    struct objmap_record *record = objmap_splay_find_hook(root, start);
    if (!record)
        return NULL;
    if (!record->left) {
        *root = record->right;
    } else {
        /* All of the left tree is smaller: its largest comes to the root and has no right child. */
        *root = splay(record->left, start);
        (*root)->right = record->right;
    }
    return record;
}
