#include "base/address.h"
#include "base/array.h"
#include "tests/support/unit.h"

/* Every way to write an address that some program takes, and what we make of it.  "": we say that it is an
 * address and not which. */
static const struct spelling {
    const char *written;
    enum address_spelling spelling;
    const char *shown;
    enum address_class class;
} spellings[] = {
    { "127.0.0.1", ADDRESS_PLAIN, "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.255.255.254", ADDRESS_PLAIN, "127.255.255.254", ADDRESS_LOOPBACK },
    { "127.1", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.0.1", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "2130706433", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "0x7f000001", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "0X7F000001", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "017700000001", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "0177.0.0.1", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "0x7f.1", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "0x7f.0x0.0x0.0x1", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.0.0.1.", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.000.000.001", ADDRESS_ODD, "127.0.0.1", ADDRESS_LOOPBACK },
    { "127.0.0.08", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "127.0.0.256", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "4294967296", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "99999999999999999999999999", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "1.2.3.4.5", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "0x", ADDRESS_ODD, "0.0.0.0", ADDRESS_UNSPECIFIED },
    { "[127.0.0.1]", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "0.0.0.0", ADDRESS_PLAIN, "0.0.0.0", ADDRESS_UNSPECIFIED },
    { "0", ADDRESS_ODD, "0.0.0.0", ADDRESS_UNSPECIFIED },
    { "[::1]", ADDRESS_PLAIN, "::1", ADDRESS_LOOPBACK },
    { "::1", ADDRESS_PLAIN, "::1", ADDRESS_LOOPBACK },
    { "[0:0:0:0:0:0:0:1]", ADDRESS_PLAIN, "::1", ADDRESS_LOOPBACK },
    { "[::ffff:127.0.0.1]", ADDRESS_PLAIN, "127.0.0.1", ADDRESS_LOOPBACK },
    { "[::FFFF:7F00:1]", ADDRESS_PLAIN, "127.0.0.1", ADDRESS_LOOPBACK },
    { "[::ffff:0177.0.0.1]", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "[::127.0.0.1]", ADDRESS_PLAIN, "::127.0.0.1", ADDRESS_TRANSLATED },
    { "[64:ff9b::7f00:1]", ADDRESS_PLAIN, "64:ff9b::7f00:1", ADDRESS_TRANSLATED },
    { "[64:ff9b:1::7f00:1]", ADDRESS_PLAIN, "64:ff9b:1::7f00:1", ADDRESS_TRANSLATED },
    { "[2002:7f00:1::]", ADDRESS_PLAIN, "2002:7f00:1::", ADDRESS_TRANSLATED },
    { "[2001:0:1::]", ADDRESS_PLAIN, "2001:0:1::", ADDRESS_TRANSLATED },
    { "[fe80::1%lo]", ADDRESS_ODD, "fe80::1", ADDRESS_LINK_LOCAL },
    { "fe80::1%25lo", ADDRESS_ODD, "fe80::1", ADDRESS_LINK_LOCAL },
    { "::ffff:1.2.3.4%x.example.com", ADDRESS_ODD, "1.2.3.4", ADDRESS_PUBLIC },
    { "[::]", ADDRESS_PLAIN, "::", ADDRESS_UNSPECIFIED },
    { "[::1", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "::1]", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "[]", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { ":::", ADDRESS_ODD, "", ADDRESS_UNSPECIFIED },
    { "169.254.169.254", ADDRESS_PLAIN, "169.254.169.254", ADDRESS_METADATA },
    { "2852039166", ADDRESS_ODD, "169.254.169.254", ADDRESS_METADATA },
    { "0xa9fea9fe", ADDRESS_ODD, "169.254.169.254", ADDRESS_METADATA },
    { "0251.0376.0251.0376", ADDRESS_ODD, "169.254.169.254", ADDRESS_METADATA },
    { "169.254.43518", ADDRESS_ODD, "169.254.169.254", ADDRESS_METADATA },
    { "[::ffff:a9fe:a9fe]", ADDRESS_PLAIN, "169.254.169.254", ADDRESS_METADATA },
    { "[fd00:ec2::254]", ADDRESS_PLAIN, "fd00:ec2::254", ADDRESS_METADATA },
    { "100.100.100.200", ADDRESS_PLAIN, "100.100.100.200", ADDRESS_METADATA },
    { "192.0.0.192", ADDRESS_PLAIN, "192.0.0.192", ADDRESS_METADATA },
    { "127。0。0。1", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "１２７.0.0.1", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "localhost", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { ".", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "1..2", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "+1", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { " 127.0.0.1", ADDRESS_NOT, "", ADDRESS_UNSPECIFIED },
    { "8.8.8.8", ADDRESS_PLAIN, "8.8.8.8", ADDRESS_PUBLIC },
    { "2606:4700::1111", ADDRESS_PLAIN, "2606:4700::1111", ADDRESS_PUBLIC },
};

static void every_spelling_of_an_address_is_known(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
        const struct spelling *row = &spellings[i];
        struct address address;
        char shown[ADDRESS_SIZE];
        enum address_spelling spelling = address_read(row->written, strlen(row->written), &address);

        address_show(&address, shown);
        if (spelling != row->spelling || strcmp(shown, row->shown) != 0 ||
            address_class(&address) != row->class)
            fail_msg("%s: spelling %d, address \"%s\", class %d", row->written, spelling, shown,
                     address_class(&address));
    }
}

/* The first and the last address of each range, and its neighbours, which are of another class. */
static const struct bounds {
    const char *before, *first, *last, *after;
    enum address_class class;
} bounds[] = {
    { "9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", ADDRESS_PRIVATE },
    { "100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", ADDRESS_PRIVATE },
    { "126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", ADDRESS_LOOPBACK },
    { "169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0", ADDRESS_LINK_LOCAL },
    { "172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", ADDRESS_PRIVATE },
    { "191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", ADDRESS_RESERVED },
    { "192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", ADDRESS_RESERVED },
    { "192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", ADDRESS_TRANSLATED },
    { "192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", ADDRESS_PRIVATE },
    { "198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", ADDRESS_RESERVED },
    { "198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", ADDRESS_RESERVED },
    { "203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", ADDRESS_RESERVED },
    { "223.255.255.255", "224.0.0.0", "239.255.255.255", "240.0.0.0", ADDRESS_MULTICAST },
    { "239.255.255.255", "240.0.0.0", "255.255.255.254", "255.255.255.255", ADDRESS_RESERVED },
    { "64:ff9a:ffff:ffff:ffff:ffff:ffff:ffff", "64:ff9b::", "64:ff9b::ffff:ffff", "64:ff9b::1:0:0",
      ADDRESS_TRANSLATED },
    { "64:ff9b:0:ffff::", "64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff",
      "64:ff9b:2::", ADDRESS_TRANSLATED },
    { "ff:ffff::", "100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::", ADDRESS_RESERVED },
    { "2001:0:ffff::", "2001:1::", "2001:1ff:ffff::", "2001:200::", ADDRESS_RESERVED },
    { "2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::", "2001:db9::", ADDRESS_RESERVED },
    { "2001:ffff::", "2002::", "2002:ffff::", "2003::", ADDRESS_TRANSLATED },
    { "fbff::", "fc00::", "fdff::", "fe00::", ADDRESS_PRIVATE },
    { "fe7f::", "fe80::", "febf::", "fec0::", ADDRESS_LINK_LOCAL },
    { "febf::", "fec0::", "feff::", "ff00::", ADDRESS_PRIVATE },
    { "feff::", "ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "8.8.8.8", ADDRESS_MULTICAST },
};

static enum address_class class_of(const char *written)
{
    struct address address;

    assert_int_equal(address_read(written, strlen(written), &address), ADDRESS_PLAIN);
    return address_class(&address);
}

static void ranges_begin_and_end_where_they_do(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(bounds); i++) {
        const struct bounds *row = &bounds[i];

        if (class_of(row->first) != row->class || class_of(row->last) != row->class ||
            class_of(row->before) == row->class || class_of(row->after) == row->class)
            fail_msg("%s to %s: %d %d %d %d", row->first, row->last, class_of(row->before),
                     class_of(row->first), class_of(row->last), class_of(row->after));
    }
}

static void a_mapped_address_is_the_address_itself(void **state)
{
    const unsigned char mapped[16] = { [10] = 0xff, 0xff, 10, 0, 0, 5 };
    struct address a = address_from(mapped, sizeof mapped), b = address_from(mapped + 12, 4);

    (void)state;
    assert_true(address_same(&a, &b));
    assert_int_equal(address_class(&a), ADDRESS_PRIVATE);
    assert_int_equal(address_from(mapped, 5).len, 0);
}

static void a_zero_byte_ends_nothing(void **state)
{
    static const char v6[] = "::1\0.example.com", v4[] = "127.0.0.1\0x";
    struct address address;

    (void)state;
    assert_int_equal(address_read(v6, sizeof v6 - 1, &address), ADDRESS_ODD);
    assert_int_equal(address_read(v4, sizeof v4 - 1, &address), ADDRESS_NOT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_of_an_address_is_known),
        cmocka_unit_test(ranges_begin_and_end_where_they_do),
        cmocka_unit_test(a_mapped_address_is_the_address_itself),
        cmocka_unit_test(a_zero_byte_ends_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
