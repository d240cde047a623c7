#include "cli/say.h"

#include "base/error.h"
#include "base/text.h"
#include "cli/help.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
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
    print("cove: ", err->text);
    return EXIT_OWN_ERROR;
}

void say_warning(const char *format, ...)
{
    char message[sizeof((struct error *)0)->text];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    print("cove: warning: ", message);
}

void say_help(const struct command *command)
{
    autotext struct text text = TEXT_NONE;

    help_command(command, &text);
    fputs(text_string(&text), stdout);
}

/* What was typed before the question stood there answers something else: the last question, or one
 * that a program drew to look like this one. */
bool say_ask(const char *question)
{
    char answer[256];

    if (!isatty(STDIN_FILENO))
        return false;
    tcflush(STDIN_FILENO, TCIFLUSH);
    fprintf(stderr, "%s [y/N] ", question);
    fflush(stderr);
    return read(STDIN_FILENO, answer, sizeof answer) > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

bool say_wants_terminal(enum terminal wish)
{
    if (wish == TERMINAL_AUTO)
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    return wish == TERMINAL_YES;
}
