// SPDX-License-Identifier: Apache-2.0

package failure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var allKinds = []error{
	ErrNotFound, ErrForbidden, ErrBusy, ErrThrottled, ErrUnauthorized, ErrInvalid, ErrQuota, ErrConflict,
	ErrUnavailable, ErrTLS, ErrLater,
}

func TestStatusErrorKind(t *testing.T) {
	tests := []struct {
		name string
		err  *StatusError
		want error
	}{
		{name: "a busy entity is busy, not invalid", err: &StatusError{Status: 400, Code: "BUSY_ENTITY"}, want: ErrBusy},
		{name: "other bad requests are invalid", err: &StatusError{Status: 400, Code: "BAD_REQUEST"}, want: ErrInvalid},
		{name: "a name in use is a conflict", err: &StatusError{Status: 400, Code: "DUPLICATE_NAME"}, want: ErrConflict},
		{name: "404 is not found", err: &StatusError{Status: 404}, want: ErrNotFound},
		{
			name: "403 is forbidden, which does not prove absence",
			err:  &StatusError{Status: 403, Code: "ACCESS_TO_RESOURCE_IS_FORBIDDEN"},
			want: ErrForbidden,
		},
		{name: "401 is unauthorized", err: &StatusError{Status: 401}, want: ErrUnauthorized},
		{name: "429 is throttled", err: &StatusError{Status: 429}, want: ErrThrottled},
		{name: "503 with a delay is throttled", err: &StatusError{Status: 503, retryAfter: time.Second}, want: ErrThrottled},
		{name: "503 without one is unavailable", err: &StatusError{Status: 503}, want: ErrUnavailable},
		{
			name: "500 is unavailable, regardless of its text",
			err:  &StatusError{Status: 500, Message: "VDC_COMPOSE_VAPP is busy"},
			want: ErrUnavailable,
		},
		{name: "502 is unavailable, not absent", err: &StatusError{Status: 502}, want: ErrUnavailable},
		{name: "a proxy's 404 does not prove absence", err: &StatusError{Status: 404, foreign: true}, want: ErrUnavailable},
		{name: "nor does a firewall's 403", err: &StatusError{Status: 403, foreign: true}, want: ErrUnavailable},
		{name: "a full VDC is a quota error even with status 500", err: &StatusError{Status: 500, Code: "QUOTA_EXCEEDED"}, want: ErrQuota},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			err := fmt.Errorf("powering on VM %s: %w", "cp-0", tt.err)

			for _, kind := range allKinds {
				g.Expect(errors.Is(err, kind)).To(Equal(kind == tt.want), kind.Error()) //nolint:errorlint // sentinels are compared by identity here
			}
		})
	}
}

func TestReadErrors(t *testing.T) {
	tests := []struct {
		name, body, code, text string
	}{
		{
			name: "XML, without the request's ID",
			body: `<?xml version="1.0"?><Error xmlns="http://www.vmware.com/vcloud/v1.5" message="[ 1b-2c ] The entity is gone." majorErrorCode="404" minorErrorCode="X"/>`,
			code: "X",
			text: "The entity is gone. (HTTP 404 X)",
		},
		{
			name: "busy, without the task's ID",
			body: `<Error xmlns="http://www.vmware.com/vcloud/v1.5" message="[ 7 ] Unable to perform this action. Contact your cloud administrator. VDC_RECOMPOSE_VAPP(com.vmware.vcloud.entity.task:4e8)" minorErrorCode="BUSY_ENTITY"/>`,
			code: "BUSY_ENTITY",
			text: "Unable to perform this action. Contact your cloud administrator. (HTTP 404 BUSY_ENTITY)",
		},
		{name: "JSON", body: `{"minorErrorCode":"Y","message":"[ 7 ] No.","stackTrace":"secret"}`, code: "Y", text: "No. (HTTP 404 Y)"},
		{
			name: "OAuth",
			body: `{"error":"invalid_grant","error_description":"Unknown token"}`,
			text: "invalid_grant Unknown token (HTTP 404)",
		},
		{
			name: "HTML",
			body: "<html><head><style>b{}</style></head><body><h1>Bad\n Gateway</h1></body></html>",
			text: "not a response from VCD: no content type (HTTP 404)",
		},
		{
			name: "the status of another API",
			body: `{"kind":"Status","message":"secrets canary is forbidden"}`,
			text: "Not Found (HTTP 404)",
		},
		{name: "an error of another server", body: `{"error":"canary","error_description":"canary"}`, text: "Not Found (HTTP 404)"},
		{name: "a JSON string", body: `"canary"`, text: "Not Found (HTTP 404)"},
		{
			name: "an XML error of another server",
			body: `<Error message="canary" minorErrorCode="canary"/>`,
			text: "not a response from VCD: no content type (HTTP 404)",
		},
		{name: "nothing", text: "Not Found (HTTP 404)"},
		{name: "broken JSON", body: `{"message":`, text: "not a response from VCD: no content type (HTTP 404)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			err := NewStatusError("op", 404, nil, []byte(tt.body), time.Now())

			g.Expect(err.Code).To(Equal(tt.code))
			g.Expect(err.Error()).To(Equal(tt.text))
		})
	}
}

func TestMessagesDoNotRepeatEncodedText(t *testing.T) {
	g := NewWithT(t)
	name := strings.Repeat("n", 128)

	got := TidyMessage("vApp " + name + ": the value H4sIA" + strings.Repeat("Ab+/0",
		60) + "== of guestinfo.userdata is too long")

	g.Expect(got).To(Equal("vApp " + name + ": the value […] of guestinfo.userdata is too long"))
}

func TestLongMessagesAreTruncated(t *testing.T) {
	g := NewWithT(t)

	got := TidyMessage(strings.Repeat("ä", maxMessage))

	g.Expect(len(got)).To(BeNumerically("<=", maxMessage+3))
	g.Expect(got).To(HaveSuffix("…"))
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		name, value string
		want        time.Duration
	}{
		{"seconds", "7", 7 * time.Second},
		{"a date", "Sat, 01 Aug 2026 12:01:00 GMT", time.Minute},
		{"a date in the past is not a delay", "Sat, 01 Aug 2026 11:00:00 GMT", 0},
		{"an invalid value is not a delay", "soon", 0},
		{"a day is too long", "86400", maxRetryAfter},
		{"an overflowing number of seconds is, too", "9223372036854775807", maxRetryAfter},
		{"a date from a fast clock is, too", "Sun, 02 Aug 2026 12:00:00 GMT", maxRetryAfter},
		{"an empty value is not a delay", "", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(parseRetryAfter(tt.value, now)).To(Equal(tt.want))
		})
	}
}

func TestLookupErrors(t *testing.T) {
	tests := []struct {
		name string
		err  *LookupError
		want string
	}{
		{
			name: "missing objects",
			err:  &LookupError{Kind: "template", Name: "x", In: "catalog c", Err: ErrNotFound},
			want: `template "x" in catalog c does not exist or is not visible to this user`,
		},
		{
			name: "unusable objects",
			err:  &LookupError{Kind: "template", Name: "x", Reason: "has no VM", Err: ErrInvalid},
			want: `template "x" has no VM`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)

			g.Expect(tt.err.Error()).To(Equal(tt.want))
			g.Expect(errors.Is(tt.err, tt.err.Err)).To(BeTrue())
		})
	}
}

func TestIgnoreNotFound(t *testing.T) {
	g := NewWithT(t)

	g.Expect(IgnoreNotFound(fmt.Errorf("deleting: %w", &StatusError{Status: 404}))).To(Succeed())
	g.Expect(IgnoreNotFound(&StatusError{Status: 403})).NotTo(Succeed())
}

func TestCancellationIsPreserved(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://vcd", http.NoBody)
	g.Expect(err).NotTo(HaveOccurred())

	err = NewConnectionError(req, "https://vcd", errors.New("read tcp 127.0.0.1:4711: use of closed connection"),
		time.Second)

	g.Expect(err).To(MatchError(context.Canceled))
	for _, kind := range allKinds {
		g.Expect(err).NotTo(MatchError(kind))
	}
}
