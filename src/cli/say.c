#include "cli/say.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/help.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

static void print(const char *prefix, const char *message)
{
    autotext struct text line = TEXT_NONE;

    text_add(&line, prefix);
    text_add_inert(&line, message);
    text_add(&line, "\n");
    fputs(text_string(&line), stderr);
}

int say_error(const struct error *err)
{
    struct error whole = *err;

    /* The text says what was tried; the doctor tries the calls that it takes one by one. */
    if (err->kind == ERROR_SYSTEM && err->sys_errno == ENOSYS && !strstr(err->text, "cove doctor"))
        error_hint(&whole, "a system call is missing here (`cove doctor` tells more)");
    print("cove: ", whole.text);
    return EXIT_OWN_ERROR;
}

static void __attribute__((format(printf, 2, 0)))
print_list(const char *prefix, const char *format, va_list args)
{
    char message[sizeof((struct error *)0)->text];

    vsnprintf(message, sizeof message, format, args);
    print(prefix, message);
}

void say_warning(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_list("cove: warning: ", format, args);
    va_end(args);
}

void say_note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    print_list("cove: ", format, args);
    va_end(args);
}

void say_help(const struct command *command)
{
    autotext struct text text = TEXT_NONE;

    help_command(command, &text);
    fputs(text_string(&text), stdout);
}

/* The first letter of a line, byte by byte: what comes after it is for somebody else.  0: there is none. */
static char read_letter(void)
{
    char line[2] = "", *at = line;

    while (read(STDIN_FILENO, at, 1) == 1 && *at != '\n')
        at = line + 1;
    return (char)(at == line ? '\0' : tolower((unsigned char)line[0]));
}

/* What was typed before the question stood there answers something else: the last question, or one
 * that a program drew to look like this one. */
static char ask(const char *question, const char *answers)
{
    tcflush(STDIN_FILENO, TCIFLUSH);
    fprintf(stderr, "%s [", question);
    for (const char *at = answers; *at; at++)
        fprintf(stderr, "%s%c", at > answers ? "/" : "", *at);
    fputs("] ", stderr);
    fflush(stderr);
    return read_letter();
}

/* The one in capitals. */
static char usual_of(const char *answers)
{
    return (char)tolower(answers[strcspn(answers, "ABCDEFGHIJKLMNOPQRSTUVWXYZ")]);
}

/* What stands for nothing is no answer. */
static bool is_answer(const char *answers, char letter)
{
    return letter != '?' && (letter == usual_of(answers) || strchr(answers, letter));
}

char say_choose(const char *question, const char *answers, const char *help)
{
    char letter;

    while ((letter = ask(question, answers)) && !is_answer(answers, letter))
        fputs(help, stderr);
    return (char)(letter ? letter : usual_of(answers));
}

bool say_ask(const char *question)
{
    return isatty(STDIN_FILENO) && say_choose(question, "yN", "") == 'y';
}

bool say_wants_terminal(enum terminal wish)
{
    if (wish == TERMINAL_AUTO)
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return wish == TERMINAL_YES;
}
