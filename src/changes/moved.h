#pragma once

struct changes;

/* For changes that were made to a copy: flags (FLAG_BASE_CHANGED) those whose original in the owner's
 * `tree` is not what `copy` has there, by type, mode, content or link target, or that would be new where
 * the owner has made something.  Of the others the old side gets the time that the owner's file has, so
 * that apply_changes() goes by what was compared here. */
void changes_flag_moved(struct changes *changes, int copy, int tree);
