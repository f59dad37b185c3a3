// SPDX-License-Identifier: Apache-2.0

// Package problems maps failures of requests to VCD to results of phases, with the reason and the remedy for the user.
package problems

import (
	"errors"
	"fmt"
	"strings"
	"time"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/intervals"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/checks"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/placement"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
)

// OfRequest maps failures that are unrelated to the request itself to results: VCD is busy, throttles requests or does
// not respond. It returns other errors.
func OfRequest(err error) (phases.Result, error) {
	switch {
	case errors.Is(err, vcd.ErrBusy):
		return phases.Wait(delay(err, intervals.Busy), infrav1.EntityBusyReason, "Waiting for another task in VCD"), nil
	case errors.Is(err, vcd.ErrThrottled):
		return phases.Unsure(delay(err, intervals.Task), infrav1.ThrottledReason, "VCD is throttling requests"), nil
	case errors.Is(err, vcd.ErrUnavailable):
		return phases.Unsure(delay(err, intervals.Unreachable), infrav1.SiteUnreachableReason,
			"%v: check spec.site, the network and VCD itself", err), nil
	case errors.Is(err, vcd.ErrTLS):
		// The next session cannot be opened either, and reports which identity it is.
		return phases.Fail(intervals.Busy, infrav1.CertificateNotTrustedReason,
			"%v: add its certificate authority to spec.tls.caBundle of the identity in spec.identityRef of the VCDCluster, or to ca.crt in its Secret", err).NoAccess(), nil
	case errors.Is(err, vcd.ErrUnauthorized):
		return phases.Fail(intervals.FirstRetry, infrav1.CredentialsRejectedReason,
			"VCD rejects the credentials (%v): correct username and password, or apiToken, in the Secret of the identity in spec.identityRef of the VCDCluster", err).NoAccess(), nil
	}
	return phases.Done, err
}

// OfWrite maps the failure of a write request to a result. VCD will probably reject the request again, so the caller
// decides when to retry.
func OfWrite(err error, doing string) (phases.Result, error) {
	if out, err := OfRequest(err); err == nil {
		return out, nil
	}
	switch {
	case errors.Is(err, vcd.ErrQuota):
		return phases.Fail(intervals.Remedy, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, err),
			nil
	case errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(intervals.Remedy, infrav1.ForbiddenReason, "%s: %v: grant the right to the user of the identity",
			doing, err).NoAccess(), nil
	case errors.Is(err, vcd.ErrConflict):
		return phases.Fail(intervals.FirstRetry, infrav1.NameConflictReason,
			"%s: %v: it was just created, or is not visible to the user of the identity", doing, err), nil
	case errors.Is(err, vcd.ErrInvalid):
		return phases.Fail(intervals.Remedy, infrav1.RequestRejectedReason, "%s: %v", doing, err), nil
	}
	return phases.Done, fmt.Errorf("%s: %w", doing, err)
}

// OfRead maps the failure of a read request to a result. The failure proves nothing about the object.
func OfRead(err error, doing string) (phases.Result, error) {
	out, err := OfWrite(err, doing)
	return out.NoAccess(), err
}

// OfTask maps a failed task to a result.
func OfTask(t vcd.Task, doing string) phases.Result {
	if errors.Is(t.Err, vcd.ErrQuota) {
		return phases.Fail(intervals.Remedy, infrav1.QuotaExceededReason, "%s: %v: free or add capacity in VCD", doing, t.Err)
	}
	return phases.Fail(intervals.Remedy, infrav1.TaskFailedReason, "%s: %v", doing, t.Err)
}

func delay(err error, least time.Duration) time.Duration {
	return max(vcd.RetryAfter(err), least)
}

// OfFinding returns the result of a check whose problem a user can fix in VCD or in a spec; Done if found is nil.
func OfFinding(found *checks.Finding) phases.Result {
	if found == nil {
		return phases.Done
	}
	return phases.Fail(intervals.Remedy, found.Reason, "%s: %s", found.Message, found.Remedy)
}

// OfLookup maps the failure to look up an object that a user named to a result.
func OfLookup(err error, reason, remedy string) (phases.Result, error) {
	if _, ok := errors.AsType[*vcd.LookupError](err); ok {
		return phases.Fail(intervals.Remedy, reason, "%v: %s", err, remedy), nil
	}
	switch {
	case errors.Is(err, vcd.ErrNotFound), errors.Is(err, vcd.ErrInvalid), errors.Is(err, vcd.ErrForbidden):
		return phases.Fail(intervals.Remedy, reason, "%v: %s", err, remedy), nil
	}
	return OfRequest(err)
}

// OfField maps the failure to look up an object that a field names to a result.
func OfField(err error, of checks.Lookup, field string) (phases.Result, error) {
	return OfLookup(err, of.Reason, of.Remedy(field))
}

// A Remedy describes how to change the objects that fields name.
type Remedy func(fields ...string) string

// Correct is the remedy if a user can change the fields.
func Correct(fields ...string) string { return "correct " + strings.Join(fields, " and ") }

// OfSelector explains why a selector matches no usable image: the catalog does not exist, no template in it
// matches, or the newest matching template is unusable.
func OfSelector(err error, catalog placement.Choice, selector string, change Remedy) (phases.Result, error) {
	lookup, ok := errors.AsType[*vcd.LookupError](err)
	switch {
	case ok && lookup.Kind == "catalog":
		return OfLookup(err, checks.Catalog.Reason, change(catalog.Field)+", or "+checks.Catalog.Otherwise)
	case errors.Is(err, vcd.ErrAmbiguous):
		return OfLookup(err, infrav1.TemplateInvalidReason, change(catalog.Field)+": the URN of the catalog you mean")
	case errors.Is(err, vcd.ErrInvalid):
		return OfLookup(err, infrav1.TemplateInvalidReason,
			"repair or delete the template, or "+change(selector))
	}
	return OfLookup(err, infrav1.TemplateNotFoundReason,
		"add such a template to the catalog, or "+change(selector, catalog.Field))
}

// OfTemplate explains why a template is unusable: the catalog or the template does not exist, or it contains no
// usable VM.
func OfTemplate(err error, catalog, template placement.Choice, change Remedy) (phases.Result, error) {
	lookup, ok := errors.AsType[*vcd.LookupError](err)
	switch {
	case ok && lookup.Kind == "catalog":
		return OfLookup(err, checks.Catalog.Reason, change(catalog.Field)+", or "+checks.Catalog.Otherwise)
	case errors.Is(err, vcd.ErrAmbiguous):
		return OfLookup(err, infrav1.TemplateInvalidReason, change(template.Field)+": set the URN of the intended template")
	case errors.Is(err, vcd.ErrInvalid):
		return OfLookup(err, infrav1.TemplateInvalidReason,
			change(template.Field)+": set a template that contains a VM, or repair template "+template.Name)
	}
	return OfLookup(err, infrav1.TemplateNotFoundReason,
		change(template.Field, catalog.Field)+", or put the template in the catalog")
}
