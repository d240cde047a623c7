#include "keeper/destination.h"

#include "base/array.h"
#include "tests/support/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

static enum destination_kind of_ipv4(const char *address, unsigned short port, size_t len, char *name)
{
    struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons(port) };

    assert_int_equal(inet_pton(AF_INET, address, &in.sin_addr), 1);
    return destination_read(&in, len, name);
}

static enum destination_kind of_ipv6(const char *address, unsigned short port, size_t len, char *name)
{
    struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

    assert_int_equal(inet_pton(AF_INET6, address, &in.sin6_addr), 1);
    return destination_read(&in, len, name);
}

static void addresses_lead_inside_or_out(void **state)
{
    static const struct {
        const char *address;
        unsigned short port;
        enum destination_kind kind;
        const char *name;
    } cases[] = {
        { "198.51.100.1", 80, DESTINATION_NETWORK, "198.51.100.1 port 80" },
        { "255.255.255.255", 65535, DESTINATION_NETWORK, "255.255.255.255 port 65535" },
        { "198.51.100.1", 0, DESTINATION_INSIDE, NULL },
        { "127.0.0.1", 80, DESTINATION_INSIDE, NULL },
        { "127.255.255.254", 80, DESTINATION_INSIDE, NULL },
        { "128.0.0.1", 80, DESTINATION_NETWORK, "128.0.0.1 port 80" },
        { "0.0.0.0", 80, DESTINATION_INSIDE, NULL },
        { "127.0.0.1", 53, DESTINATION_INSIDE, NULL },
        { "192.0.2.1", 53, DESTINATION_INSIDE, NULL },
        { "::1", 80, DESTINATION_INSIDE, NULL },
        { "::", 80, DESTINATION_INSIDE, NULL },
        { "::1", 53, DESTINATION_INSIDE, NULL },
        { "2001:db8::1", 443, DESTINATION_NETWORK, "2001:db8::1 port 443" },
        { "::ffff:127.0.0.1", 80, DESTINATION_INSIDE, NULL },
        { "::ffff:10.0.0.1", 80, DESTINATION_NETWORK, "10.0.0.1 port 80" },
    };
    char name[DESTINATION_MAX];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        bool six = strchr(cases[i].address, ':');
        enum destination_kind kind =
            six ? of_ipv6(cases[i].address, cases[i].port, sizeof(struct sockaddr_in6), name)
                : of_ipv4(cases[i].address, cases[i].port, sizeof(struct sockaddr_in), name);

        assert_int_equal(kind, cases[i].kind);
        if (cases[i].name)
            assert_string_equal(name, cases[i].name);
    }
}

static void what_is_cut_off_leads_nowhere(void **state)
{
    char name[DESTINATION_MAX];

    (void)state;
    for (size_t len = 0; len < sizeof(struct sockaddr_in); len++)
        assert_int_equal(of_ipv4("198.51.100.1", 80, len, name), DESTINATION_INSIDE);
    for (size_t len = 0; len < 24; len++)
        assert_int_equal(of_ipv6("2001:db8::1", 80, len, name), DESTINATION_INSIDE);
    assert_int_equal(of_ipv6("2001:db8::1", 80, 24, name), DESTINATION_NETWORK);
}

static void sockets_in_the_file_system_have_a_path(void **state)
{
    struct sockaddr_un in = { .sun_family = AF_UNIX, .sun_path = "/run/x" };
    char name[DESTINATION_MAX];

    (void)state;
    assert_int_equal(destination_read(&in, sizeof in, name), DESTINATION_SOCKET);
    assert_string_equal(name, "/run/x");
    assert_int_equal(destination_read(&in, 2 + 4, name), DESTINATION_SOCKET);
    assert_string_equal(name, "/run");
    assert_int_equal(destination_read(&in, 2, name), DESTINATION_INSIDE);
    assert_int_equal(destination_read(&in, sizeof in + 1, name), DESTINATION_INSIDE);
    memset(in.sun_path, 'x', sizeof in.sun_path);
    assert_int_equal(destination_read(&in, sizeof in, name), DESTINATION_SOCKET);
    assert_int_equal(strlen(name), sizeof in.sun_path);
    in.sun_path[0] = '\0';
    assert_int_equal(destination_read(&in, sizeof in, name), DESTINATION_INSIDE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_lead_inside_or_out),
        cmocka_unit_test(what_is_cut_off_leads_nowhere),
        cmocka_unit_test(sockets_in_the_file_system_have_a_path),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
