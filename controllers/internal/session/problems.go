// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"strings"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// LoginProblem maps the failure to open a session to a result with its remedy. It returns errors that are unrelated to
// the credentials or the site.
func LoginProblem(err error, site, identity string) (phases.Result, error) {
	out, err := loginProblem(err, site, identity)
	return out.NoAccess(), err
}

func loginProblem(err error, site, identity string) (phases.Result, error) {
	if problem, ok := errors.AsType[*storeError](err); ok {
		return problem.out, problem.err
	}
	switch {
	case errors.Is(err, vcd.ErrUnauthorized):
		return phases.Fail(loginPoll, infrav1.CredentialsRejectedReason,
			"%s rejects the credentials of %s (%v): correct username and password, or apiToken, in its Secret, "+
				"or correct spec.org", site, identity, err), nil
	case errors.Is(err, vcd.ErrTLS):
		return phases.Fail(trustPoll, infrav1.CertificateNotTrustedReason,
			"The certificate of %s is not trusted (%v): add its certificate authority to spec.tls.caBundle of "+
				"%s, or to ca.crt in its Secret", site, err, identity), nil
	case errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(RemedyPoll, infrav1.ForbiddenReason,
			"%s denies access to %s (%v): check spec.org and the rights of the user", site, identity, err), nil
	case errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrNotFound):
		return phases.Fail(RemedyPoll, infrav1.SiteInvalidReason,
			"%s cannot be used (%v): check spec.site and spec.org", site, err), nil
	}
	return AskProblem(err)
}

// AskProblem maps failures that are unrelated to the request itself to results: VCD is busy, throttles requests or does
// not respond. It returns other errors.
func AskProblem(err error) (phases.Result, error) {
	switch {
	case errors.Is(err, vcd.ErrBusy):
		return phases.Wait(delay(err, BusyPoll), infrav1.EntityBusyReason, "Waiting for another task in VCD"), nil
	case errors.Is(err, vcd.ErrThrottled):
		return phases.Unsure(delay(err, TaskPoll), infrav1.ThrottledReason, "VCD is throttling requests"), nil
	case errors.Is(err, vcd.ErrUnavailable):
		return phases.Unsure(delay(err, UnreachablePoll), infrav1.SiteUnreachableReason,
			"%v: check spec.site, the network and VCD itself", err), nil
	case errors.Is(err, vcd.ErrTLS):
		// The next session cannot be opened either, and reports which identity it is.
		return phases.Fail(BusyPoll, infrav1.CertificateNotTrustedReason,
			"%v: add its certificate authority to spec.tls.caBundle of the identity in spec.identityRef of the "+
				"VCDCluster, or to ca.crt in its Secret", err).NoAccess(), nil
	case errors.Is(err, vcd.ErrUnauthorized):
		return phases.Fail(FirstRetry, infrav1.CredentialsRejectedReason,
			"VCD rejects the credentials (%v): correct username and password, or apiToken, in the Secret of the "+
				"identity in spec.identityRef of the VCDCluster", err).NoAccess(), nil
	}
	return phases.Done, err
}

// Refusal maps the failure of a write request to a result. VCD will probably reject the request again, so the caller
// decides when to retry.
func Refusal(err error, doing string) (phases.Result, error) {
	if out, err := AskProblem(err); err == nil {
		return out, nil
	}
	switch {
	case errors.Is(err, vcd.ErrQuota):
		return phases.Fail(RemedyPoll, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, err),
			nil
	case errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(RemedyPoll, infrav1.ForbiddenReason, "%s: %v: grant the right to the user of the identity",
			doing, err).NoAccess(), nil
	case errors.Is(err, vcd.ErrConflict):
		return phases.Fail(FirstRetry, infrav1.NameConflictReason,
			"%s: %v: it was just created, or is not visible to the user of the identity", doing, err), nil
	case errors.Is(err, vcd.ErrInvalid):
		return phases.Fail(RemedyPoll, infrav1.RequestRejectedReason, "%s: %v", doing, err), nil
	}
	return phases.Done, fmt.Errorf("%s: %w", doing, err)
}

// Unread maps the failure of a read request to a result. The failure proves nothing about the object.
func Unread(err error, doing string) (phases.Result, error) {
	out, err := Refusal(err, doing)
	return out.NoAccess(), err
}

// TaskFailure maps a failed task to a result.
func TaskFailure(t vcd.Task, doing string) phases.Result {
	if errors.Is(t.Err, vcd.ErrQuota) {
		return phases.Fail(RemedyPoll, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, t.Err)
	}
	return phases.Fail(RemedyPoll, infrav1.TaskFailedReason, "%s: %v", doing, t.Err)
}

func delay(err error, least time.Duration) time.Duration {
	return max(vcd.RetryAfter(err), least)
}

// Problem returns the result of a check whose problem a user can fix in VCD or in a spec; Done if found is nil.
func Problem(found *checks.Finding) phases.Result {
	if found == nil {
		return phases.Done
	}
	return phases.Fail(RemedyPoll, found.Reason, "%s: %s", found.Message, found.Remedy)
}

// LookupProblem maps the failure to look up an object that a user named to a result.
func LookupProblem(err error, reason, remedy string) (phases.Result, error) {
	if _, ok := errors.AsType[*vcd.LookupError](err); ok {
		return phases.Fail(RemedyPoll, reason, "%v: %s", err, remedy), nil
	}
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(RemedyPoll, reason, "%v: %s", err, remedy), nil
	}
	return AskProblem(err)
}

// NotFound maps the failure to look up an object that a field names to a result.
func NotFound(err error, of checks.Lookup, field string) (phases.Result, error) {
	return LookupProblem(err, of.Reason, of.Remedy(field))
}

// A Remedy describes how to change the objects that fields name.
type Remedy func(fields ...string) string

// Correct is the remedy if a user can change the fields.
func Correct(fields ...string) string { return "correct " + strings.Join(fields, " and ") }

// SelectorProblem explains why a selector matches no usable image: the catalog does not exist, no template in it
// matches, or the newest matching template is unusable.
func SelectorProblem(err error, catalog placement.Choice, selector string, change Remedy) (phases.Result, error) {
	lookup, ok := errors.AsType[*vcd.LookupError](err)
	switch {
	case ok && lookup.Kind == "catalog":
		return LookupProblem(err, checks.Catalog.Reason, change(catalog.Field)+", or "+checks.Catalog.Otherwise)
	case errors.Is(err, vcd.ErrAmbiguous):
		return LookupProblem(err, infrav1.TemplateInvalidReason, change(catalog.Field)+": the URN of the catalog you mean")
	case errors.Is(err, vcd.ErrInvalid):
		return LookupProblem(err, infrav1.TemplateInvalidReason,
			"repair or delete the template, or "+change(selector))
	}
	return LookupProblem(err, infrav1.TemplateNotFoundReason,
		"add such a template to the catalog, or "+change(selector, catalog.Field))
}

// TemplateProblem explains why a template is unusable: the catalog or the template does not exist, or it contains no
// usable VM.
func TemplateProblem(err error, catalog, template placement.Choice, change Remedy) (phases.Result, error) {
	lookup, ok := errors.AsType[*vcd.LookupError](err)
	switch {
	case ok && lookup.Kind == "catalog":
		return LookupProblem(err, checks.Catalog.Reason, change(catalog.Field)+", or "+checks.Catalog.Otherwise)
	case errors.Is(err, vcd.ErrAmbiguous):
		return LookupProblem(err, infrav1.TemplateInvalidReason, change(template.Field)+": set the URN of the "+
			"intended template")
	case errors.Is(err, vcd.ErrInvalid):
		return LookupProblem(err, infrav1.TemplateInvalidReason,
			change(template.Field)+": set a template that contains a VM, or repair template "+template.Name)
	}
	return LookupProblem(err, infrav1.TemplateNotFoundReason,
		change(template.Field, catalog.Field)+", or put the template in the catalog")
}
