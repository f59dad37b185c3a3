// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

// A connectionError is the reason why a request got no response. Its text contains no ports or addresses that change.
type connectionError struct {
	kind   error
	reason string
}

// Error implements error.
func (e *connectionError) Error() string { return e.reason }

// Unwrap lets [errors.Is] match the sentinels.
func (e *connectionError) Unwrap() error { return e.kind }

// Unavailable returns an error for a request that got no response, or none from VCD. It wraps [ErrUnavailable].
func Unavailable(reason string) error { return &connectionError{ErrUnavailable, reason} }

// Invalid returns an error for a request that is not sent because it is invalid. It wraps [ErrInvalid].
func Invalid(reason string) error { return &connectionError{ErrInvalid, reason} }

// NewConnectionError classifies the error of a request to site that got no response. It preserves the cause if the
// caller canceled the request.
func NewConnectionError(req *http.Request, site string, err error, timeout time.Duration) error {
	if ctx := req.Context(); ctx.Err() != nil {
		cause := context.Cause(ctx)
		if silent, ok := errors.AsType[*connectionError](cause); ok {
			return silent
		}
		return fmt.Errorf("calling %s: %w", site, cause)
	}
	if proxy, ok := siteproxy.Explain(req, err); ok {
		return Unavailable(fmt.Sprintf("%s cannot be reached: %s", site, proxy))
	}
	via := siteproxy.Via(req)
	if reason, ok := distrust(err); ok {
		return &connectionError{ErrTLS, fmt.Sprintf("certificate of %s is not trusted: %s", site, reason)}
	}
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return Unavailable(fmt.Sprintf("%s did not respond within %s%s", site, timeout, via))
	}
	return Unavailable(fmt.Sprintf("%s cannot be reached%s: %s", site, via, RootCause(err)))
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// distrust reports whether err is the rejection of a certificate, and why it was rejected.
func distrust(err error) (string, bool) {
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "it is not for this host: " + e.Error(), true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "it is signed by an unknown authority", true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "it is expired or not yet valid", true
		}
		return e.Error(), true
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return RootCause(e), true
	}
	return "", false
}

// quoted matches text in quotation marks as %q writes it.
var quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)

// RootCause returns the innermost text of err, because the outer layers contain addresses, ports and URLs. It removes
// quoted text: net/http quotes parts of a response that it cannot parse, which may come from another server.
func RootCause(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "DNS cannot resolve " + dns.Name
		}
		return "DNS: " + dns.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed before a response was received"
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return "the response header is not HTTP"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return quoted.ReplaceAllString(err.Error(), "[…]")
		}
		err = inner
	}
}
