#pragma once

/* What an audit has let through, as a policy that allows exactly that (--audit-policy). */

struct delivery;
struct error;
struct requests;
struct text;
struct trees;

/* Before the run: whether there can be such a new file, where nobody inside sees it. */
int audited_open(const char *path, const struct trees *trees, struct delivery *out, struct error *err);

/* Makes it, where that was looked up. */
int audited_write(const struct delivery *place, const struct requests *requests, struct error *err);

/* Its text.  Whatever a gateway said: each rule names one host and one port, and nothing is said twice. */
void audited_policy(const struct requests *requests, struct text *out);
