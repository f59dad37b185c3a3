// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// vcloudNamespace is how the namespace of VCD's own documents begins.
const vcloudNamespace = "http://www.vmware.com/vcloud/"

// maxMessage bounds what is kept of a message: VCD puts whole stack traces into some.
const maxMessage = 500

var (
	requestIDPrefix = regexp.MustCompile(`^(\s*\[[^\]]*\]\s*)+`)
	taskMention     = regexp.MustCompile(`\s*[A-Z_]*\(com\.vmware\.vcloud\.entity\.task:[^)]*\)`)
	blanks          = regexp.MustCompile(`\s+`)
	// encoded is longer than any name in VCD: bootstrap data, or a token, of the request that VCD complains of.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/=_-]{129,}`)
)

// NewStatusError reads what VCD, or something in front of it, answered to a call that failed.
func NewStatusError(operation string, status int, header http.Header, body []byte, now time.Time) *StatusError {
	e := &StatusError{
		Status:     status,
		Operation:  operation,
		retryAfter: parseRetryAfter(header.Get("Retry-After"), now),
	}
	found := readErrorBody(body)
	e.Code = found.code
	e.Message = TidyMessage(found.message)
	e.foreign = found.foreign
	if found.foreign {
		e.Message = "not a response from VCD: " + mediaType(header)
	}
	return e
}

// Paused is the refusal of a call to a site that asked for no calls for a while.
func Paused(left time.Duration) *StatusError {
	return &StatusError{
		Status:     http.StatusTooManyRequests,
		Message:    "VCD throttled the request",
		retryAfter: left,
	}
}

// An errorBody is what the answer to a call that failed contains.
type errorBody struct {
	code    string
	message string // only of error documents of VCD
	foreign bool   // something in front of VCD, or another server, wrote it
}

// readErrorBody understands the error documents of both APIs and of the OAuth endpoint. The text of anything else is
// not quoted: a user who may set the address of a site could read what other servers answer to the manager.
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
	return "content type " + TidyMessage(found)
}

// TidyMessage takes out what differs from one failure to the next, and what may be a secret: messages end up in
// conditions and events.
func TidyMessage(message string) string {
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
