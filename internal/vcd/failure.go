// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/siteproxy"
)

// vcloudNamespace is how the namespace of VCD's own documents begins.
const vcloudNamespace = "http://www.vmware.com/vcloud/"

// maxMessage bounds what is kept of a message: VCD puts whole stack traces into some.
const maxMessage = 500

var (
	requestIDPrefix = regexp.MustCompile(`^(\s*\[[^\]]*\]\s*)+`)
	taskMention     = regexp.MustCompile(`\s*[A-Z_]*\(com\.vmware\.vcloud\.entity\.task:[^)]*\)`)
	blanks          = regexp.MustCompile(`\s+`)
	// quoted is text as %q writes it.
	quoted = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	// encoded is longer than any name in VCD: bootstrap data, or a token, of the request that VCD complains of.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/=_-]{129,}`)
)

// newStatusError reads what VCD, or something in front of it, answered to a call that failed.
func newStatusError(operation string, got answer, now time.Time) *StatusError {
	e := &StatusError{
		Status:     got.status,
		Operation:  operation,
		retryAfter: parseRetryAfter(got.header.Get("Retry-After"), now),
	}
	found := readErrorBody(got.body)
	e.Code = found.code
	e.Message = tidyMessage(found.message)
	e.foreign = found.foreign
	if found.foreign {
		e.Message = "not an answer of VCD: " + mediaType(got.header)
	}
	return e
}

// An errorBody is what the answer to a call that failed contains.
type errorBody struct {
	code    string
	message string // only of error documents of VCD
	foreign bool   // something in front of VCD, or another server, wrote it
}

// readErrorBody understands the error documents of both APIs and of the OAuth endpoint. The text of anything else is
// not quoted: whoever may write the address of a site could read with it what other servers answer to the manager.
func readErrorBody(body []byte) errorBody {
	if len(bytes.TrimSpace(body)) == 0 {
		return errorBody{}
	}
	if json.Valid(body) {
		return readJSONError(body)
	}
	var doc struct {
		XMLName        xml.Name `xml:"Error"`
		MinorErrorCode string   `xml:"minorErrorCode,attr"`
		Message        string   `xml:"message,attr"`
	}
	err := xml.Unmarshal(body, &doc)
	if err != nil || !strings.HasPrefix(doc.XMLName.Space, vcloudNamespace) || doc.Message+doc.MinorErrorCode == "" {
		return errorBody{foreign: true}
	}
	return errorBody{
		code:    doc.MinorErrorCode,
		message: doc.Message,
	}
}

// readJSONError reads an error document of the newer API, which always has a code, or of RFC 6749.
func readJSONError(body []byte) errorBody {
	var doc struct {
		MinorErrorCode   string `json:"minorErrorCode"`
		Message          string `json:"message"`
		Error            string `json:"error"`
		ErrorDescription string `json:"error_description"`
	}
	switch {
	case json.Unmarshal(body, &doc) != nil:
		return errorBody{}
	case doc.MinorErrorCode != "":
		return errorBody{
			code:    doc.MinorErrorCode,
			message: doc.Message,
		}
	case slices.Contains(oauthErrors, doc.Error):
		return errorBody{message: strings.TrimSpace(doc.Error + " " + doc.ErrorDescription)}
	}
	return errorBody{}
}

// oauthErrors are the codes of errors of an OAuth token endpoint, by RFC 6749 5.2 and RFC 8628 3.5.
var oauthErrors = []string{
	"invalid_request",
	"invalid_client",
	"invalid_grant",
	"unauthorized_client",
	"unsupported_grant_type",
	"invalid_scope",
	"authorization_pending",
	"slow_down",
	"access_denied",
	"expired_token",
}

// mediaType describes the type of an answer.
func mediaType(header http.Header) string {
	found, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return "no content type"
	}
	return "content type " + tidyMessage(found)
}

// tidyMessage takes out what differs from one failure to the next, and what may be a secret: messages end up in
// conditions and events.
func tidyMessage(message string) string {
	message = requestIDPrefix.ReplaceAllString(message, "")
	message = taskMention.ReplaceAllString(message, "")
	message = encoded.ReplaceAllString(message, "[…]")
	message = strings.TrimSpace(blanks.ReplaceAllString(message, " "))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// maxRetryAfter bounds how long a site is left alone because it says so: what is in front of it may name a day, or have
// another idea of the time, and one call in a while is no burden.
const maxRetryAfter = 5 * time.Minute

// parseRetryAfter reads the header in both its forms, seconds and a date.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter.Seconds()))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}

// A connectionError is why a call got no answer. Its text has no ports and addresses that change.
type connectionError struct {
	kind   error
	reason string
}

// Error implements error.
func (e *connectionError) Error() string { return e.reason }

// Unwrap lets [errors.Is] match the sentinels.
func (e *connectionError) Unwrap() error { return e.kind }

// unavailable says why VCD gave no answer, or none of its own. It wraps [ErrUnavailable].
func unavailable(reason string) error { return &connectionError{ErrUnavailable, reason} }

// invalid says why a call is not made. It wraps [ErrInvalid].
func invalid(reason string) error { return &connectionError{ErrInvalid, reason} }

// newConnectionError classifies a call to site that got no answer. The caller's own cancellation stays what it is.
func newConnectionError(req *http.Request, site string, err error, timeout time.Duration) error {
	if ctx := req.Context(); ctx.Err() != nil {
		cause := context.Cause(ctx)
		if silent, ok := errors.AsType[*connectionError](cause); ok {
			return silent
		}
		return fmt.Errorf("calling %s: %w", site, cause)
	}
	if proxy, ok := siteproxy.Explain(req, err); ok {
		return unavailable(fmt.Sprintf("%s cannot be reached: %s", site, proxy))
	}
	via := siteproxy.Via(req)
	if reason, ok := distrust(err); ok {
		return &connectionError{ErrTLS, fmt.Sprintf("certificate of %s is not trusted: %s", site, reason)}
	}
	if errors.Is(err, context.DeadlineExceeded) || isTimeout(err) {
		return unavailable(fmt.Sprintf("%s did not answer within %s%s", site, timeout, via))
	}
	return unavailable(fmt.Sprintf("%s cannot be reached%s: %s", site, via, rootCause(err)))
}

func isTimeout(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout()
}

// distrust returns why a certificate was refused.
func distrust(err error) (string, bool) {
	if e, ok := errors.AsType[x509.HostnameError](err); ok {
		return "it is not for this host: " + e.Error(), true
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "it is signed by an unknown authority; give its CA bundle", true
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if e.Reason == x509.Expired {
			return "it is expired or not yet valid", true
		}
		return e.Error(), true
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return rootCause(e), true
	}
	return "", false
}

// rootCause returns the innermost text of err: the layers above it name addresses, ports and URLs. It does not quote
// what another server answered: net/http puts what it cannot parse in quotation marks.
func rootCause(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "DNS does not know " + dns.Name
		}
		return "DNS: " + dns.Err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "connection closed before an answer came"
	}
	if _, ok := errors.AsType[textproto.ProtocolError](err); ok {
		return "the header of the answer is not HTTP"
	}
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return quoted.ReplaceAllString(err.Error(), "[…]")
		}
		err = inner
	}
}

// wrapped wraps an error, if there is one.
func wrapped(err error, doing, id string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %s: %w", doing, id, err)
}
