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

// vcloudNamespace is the prefix of the XML namespaces of VCD's documents.
const vcloudNamespace = "http://www.vmware.com/vcloud/"

// maxMessage limits the length of a message, in bytes: some messages of VCD contain whole stack traces.
const maxMessage = 500

var (
	requestIDPrefix = regexp.MustCompile(`^(\s*\[[^\]]*\]\s*)+`)
	taskMention     = regexp.MustCompile(`\s*[A-Z_]*\(com\.vmware\.vcloud\.entity\.task:[^)]*\)`)
	blanks          = regexp.MustCompile(`\s+`)
	// encoded matches text that is longer than any name in VCD, such as bootstrap data or a token that VCD quotes from
	// the request.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/=_-]{129,}`)
)

// NewStatusError returns the error of a failed request from the response of VCD, or of something in front of it.
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

// Paused returns the error of a request that is not sent because the site throttles requests. left is the remaining
// time of the pause.
func Paused(left time.Duration) *StatusError {
	return &StatusError{
		Status:     http.StatusTooManyRequests,
		Message:    "VCD throttled the request",
		retryAfter: left,
	}
}

// An errorBody is the content of the response to a failed request.
type errorBody struct {
	code    string
	message string // only from VCD's error documents
	foreign bool   // written by something in front of VCD or by another server
}

// readErrorBody reads the error documents of both APIs and of the OAuth endpoint. It does not quote any other text.
// Otherwise a user who may set the address of a site could read the responses of other servers to the manager.
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

// readJSONError reads an error document of the newer API, which always has a code, or one as defined by RFC 6749.
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

// oauthErrors are the error codes of an OAuth token endpoint according to RFC 6749 5.2 and RFC 8628 3.5.
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

// mediaType describes the content type of a response.
func mediaType(header http.Header) string {
	found, _, err := mime.ParseMediaType(header.Get("Content-Type"))
	if err != nil {
		return "no content type"
	}
	return "content type " + TidyMessage(found)
}

// TidyMessage removes text that differs from one failure to the next, and text that may be a secret: messages appear in
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

// maxRetryAfter limits the delay that a Retry-After header can request. A proxy may request a whole day or have a
// different clock, and one request every few minutes is no burden.
const maxRetryAfter = 5 * time.Minute

// parseRetryAfter parses both forms of the header, seconds and a date. It returns 0 if the value is neither.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.Atoi(strings.TrimSpace(value)); err == nil && seconds > 0 {
		return time.Duration(min(seconds, int(maxRetryAfter.Seconds()))) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil && at.After(now) {
		return min(at.Sub(now), maxRetryAfter)
	}
	return 0
}
