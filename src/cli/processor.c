/* Before main begins libcrypto asks the processor a dozen questions, to choose among its ways to hash.  In a
 * virtual machine each goes to the host, and together they take a tenth of a millisecond of every start, which
 * hashes a few hundred bytes.  So the linker gives libcrypto a function that asks nothing (--wrap), and us the
 * real one. */

#include "cli/processor.h"

#include "base/hash.h"

#ifdef __x86_64__
void ask_nothing(void) __asm__("__wrap_OPENSSL_cpuid_setup");
void ask_processor(void) __asm__("__real_OPENSSL_cpuid_setup");

void ask_nothing(void)
{
}

void processor_ask_late(void)
{
    hash_ask_late(ask_processor);
}
#else
void processor_ask_late(void)
{
}
#endif
