#pragma once

/* The policy a second time, written as plain code, so that a mistake in the generator or in the
 * clauses of the table does not go unnoticed.  Only rows without arguments are read from the table. */

#include "init/policy.h"

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { EXPECT_ALLOW = -1, EXPECT_KILL = -2 };

/* The errno of the call under a filter without FILTER_EXPLAIN, or one of the above.  For init
 * every refusal is ENOSYS. */
int expect(enum arch arch, unsigned kind, const struct seccomp_data *data);
