#include "box/init_program.h"

/* INIT_PROGRAM is the path of the built program, given by the build. */
__asm__(".section .rodata\n"
        ".balign 16\n"
        ".global init_program\n"
        ".hidden init_program\n"
        "init_program: .incbin \"" INIT_PROGRAM "\"\n"
        "init_program_end:\n"
        ".balign 8\n"
        ".global init_program_size\n"
        ".hidden init_program_size\n"
        "init_program_size: .quad init_program_end - init_program\n"
        ".previous\n");
