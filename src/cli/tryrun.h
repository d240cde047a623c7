#pragma once

struct error;
struct patient;

/* For the doctor: `cove run --rm -- true` in a work tree of its own and with its state below the scratch
 * directory.  If it fails, its words are the error.  When this returns nothing of it is left but there. */
int tryrun(const struct patient *patient, struct error *err);
