/* Failures of OpenSSL in words of ours.  Nothing of what the other side sent is among them. */

#include "net/tls_inner.h"

#include "base/array.h"

#include <openssl/err.h>
#include <openssl/sslerr.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

struct reason {
    long code;
    const char *why;
};

static const struct reason verdicts[] = {
    { X509_V_ERR_HOSTNAME_MISMATCH, "its certificate is not for this name" },
    { X509_V_ERR_IP_ADDRESS_MISMATCH, "its certificate is not for this address" },
    { X509_V_ERR_CERT_HAS_EXPIRED, "its certificate has expired" },
    { X509_V_ERR_CERT_NOT_YET_VALID, "its certificate is not valid yet" },
    { X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "its certificate is signed by nobody who is trusted" },
    { X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "its certificate is signed by nobody who is trusted" },
    { X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "its certificate is signed by nobody who is trusted" },
    { X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "its certificate is signed by nobody who is trusted" },
    { X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "its certificate is signed by itself, and not trusted" },
    { X509_V_ERR_CERT_REVOKED, "its certificate was revoked" },
    { X509_V_ERR_INVALID_PURPOSE, "its certificate is not for servers" },
    { X509_V_ERR_EE_KEY_TOO_SMALL, "the key of its certificate is too weak" },
    { X509_V_ERR_CA_KEY_TOO_SMALL, "the key of who signed its certificate is too weak" },
    { X509_V_ERR_CA_MD_TOO_WEAK, "its certificate is signed in a way that is too weak" },
};

/* An alert says what the other side did not like. */
static const struct reason reasons[] = {
    { SSL_R_TLSV1_ALERT_UNKNOWN_CA, "the other side does not trust our certificate" },
    { SSL_R_SSLV3_ALERT_BAD_CERTIFICATE, "the other side does not accept our certificate" },
    { SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN, "the other side does not accept our certificate" },
    { SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED, "the other side takes our certificate for expired" },
    { SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE, "the other side and we have no cipher in common" },
    { SSL_R_TLSV1_UNRECOGNIZED_NAME, "the other side knows no such name" },
    { SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED, "the other side asks for a certificate of the client" },
    { SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, "the other side wants another version of TLS" },
    { SSL_R_NO_APPLICATION_PROTOCOL, "it offers neither h2 nor http/1.1" },
    { SSL_R_TLSV1_ALERT_NO_APPLICATION_PROTOCOL, "the other side does not have http/1.1" },
    { SSL_R_NO_SHARED_CIPHER, "the other side and we have no cipher in common" },
    { SSL_R_UNSUPPORTED_PROTOCOL, "it wants TLS older than 1.2" },
    { SSL_R_UNEXPECTED_EOF_WHILE_READING, "it ended without a word" },
    { SSL_R_WRONG_VERSION_NUMBER, "what came is not TLS" },
    { SSL_R_HTTP_REQUEST, "what came is not TLS" },
    { SSL_R_DH_KEY_TOO_SMALL, "its key exchange is too weak" },
};

static const char *find(const struct reason *table, size_t len, long code)
{
    for (size_t i = 0; i < len; i++)
        if (table[i].code == code)
            return table[i].why;
    return NULL;
}

void tls_explain(const SSL *ssl, char out[TLS_WHY])
{
    long verdict = ssl ? SSL_get_verify_result(ssl) : X509_V_OK;
    unsigned long code = ERR_peek_error();
    const char *why = NULL, *text = NULL;

    if (verdict != X509_V_OK) {
        why = find(verdicts, ARRAY_LEN(verdicts), verdict);
        text = X509_verify_cert_error_string(verdict);
    } else if (ERR_GET_LIB(code) == ERR_LIB_SSL) {
        why = find(reasons, ARRAY_LEN(reasons), ERR_GET_REASON(code));
        text = ERR_reason_error_string(code);
    }
    if (why)
        snprintf(out, TLS_WHY, "%s", why);
    else
        snprintf(out, TLS_WHY, "TLS failed%s%.90s", text ? ": " : "", text ? text : "");
}
