/* Any message, as a question and as an answer: names end, lengths hold, and what we answer is an answer. */
#include "net/dns.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned char out[DNS_UDP_MAX];
    struct dns_addresses addresses;
    struct dns_question question;
    struct address address = address_from("\1\2\3\4\5\6\7\10\1\2\3\4\5\6\7\10", 16);
    enum dns_code code = DNS_SERVFAIL;
    enum dns_read read = dns_read_question(data, size, &question, &code);

    if (read != DNS_IGNORE) {
        check(strlen(question.name) == question.len && question.len < DNS_NAME_SIZE && question.end <= size);
        size_t len = dns_write_answer(data, question.end, code, &address, 30, out);

        check(len >= DNS_HEADER && len <= DNS_UDP_MAX && memcmp(out, data, 2) == 0);
        check(dns_read_question(out, len, &question, &code) == DNS_IGNORE);
    }
    if (size >= 2) {
        enum dns_heard heard =
            dns_read_answer(data, size, (uint16_t)(data[0] << 8 | data[1]), "a.b", DNS_A, &addresses);

        check(heard != DNS_HEARD || addresses.len <= DNS_ADDRESSES_MAX);
        for (size_t i = 0; heard == DNS_HEARD && i < addresses.len; i++)
            check(addresses.items[i].len == 4);
    }
    return 0;
}
