// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/failure"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd/internal/transport"
)

// login requests an access token as a service account, with the API token if there is one, or with user name and
// password.
func login(ctx context.Context, via *transport.Transport, as Account) (token, error) {
	request := loginByPassword
	switch {
	case as.ServiceAccount != nil:
		request = loginByServiceAccount
	case as.Credentials.APIToken != "":
		request = loginByAPIToken
	}
	t, err := loginAgreed(ctx, via, as, request)
	if err != nil {
		return token{}, err
	}
	now := via.Site.Clock.Now()
	switch {
	case !t.expires.After(now):
		// The clocks disagree, or the token has no expiry. A 401 then shows that it has expired.
		t.expires = time.Time{}
	default:
		// Replace the token a little early, so that it does not expire while a request is in flight.
		t.expires = t.expires.Add(-min(5*time.Minute, t.expires.Sub(now)/10))
	}
	return t, nil
}

// A loginRequest requests an access token in an API version.
type loginRequest func(ctx context.Context, via *transport.Transport, as Account, version string) (token, error)

// loginAgreed requests a token in an API version that the responding cell accepts. The version may have been negotiated
// with another cell.
func loginAgreed(ctx context.Context, via *transport.Transport, as Account, request loginRequest) (token, error) {
	org, _ := as.identity()
	for agreements := maxAgreements; ; agreements-- {
		version, err := via.Negotiate(ctx)
		if err != nil {
			return token{}, err
		}
		t, err := request(ctx, via, as, version)
		switch {
		case err == nil:
			return t, nil
		case agreements > 0 && refusesVersion(err):
			via.Site.RefuseVersion(version)
		default:
			return token{}, fmt.Errorf("logging in to organization %s of %s: %w", org, via.Site.Base, loginFailure(err))
		}
	}
}

func loginByPassword(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	org, user := as.identity()
	path := "/cloudapi/1.0.0/sessions"
	if IsSystem(org) {
		path += "/provider"
	}
	req, err := via.Site.NewRequest(ctx, http.MethodPost, path, transport.JSONType+";version="+version, nil)
	if err != nil {
		return token{}, err
	}
	req.SetBasicAuth(user+"@"+org, as.Credentials.Password)
	got, err := via.Send(req)
	if err != nil {
		return token{}, err
	}
	value := got.Header.Get(tokenHeader)
	if value == "" {
		return token{}, failure.Unavailable("the login response has no token")
	}
	return token{value: value, expires: jwtExpiry(value)}, nil
}

func loginByAPIToken(ctx context.Context, via *transport.Transport, as Account, version string) (token, error) {
	t, _, err := exchangeToken(ctx, via, as, version)
	return t, err
}

// logout ends a session in VCD, where unused sessions would accumulate.
func logout(ctx context.Context, via *transport.Transport, t token) error {
	version := via.Site.AgreedVersion()
	req, err := via.Site.NewRequest(ctx, http.MethodDelete, "/api/session", transport.Request{}.Accept(version), nil)
	if err != nil {
		return err
	}
	authorize(req.Header, t)
	_, err = via.Send(req)
	return err
}

// A loginError is a reason of VCD, other than wrong credentials, to reject a login.
type loginError struct{ cause *failure.StatusError }

// Error implements error.
func (e *loginError) Error() string { return e.cause.Error() }

// Unwrap lets [errors.Is] match the sentinels.
func (e *loginError) Unwrap() error { return failure.ErrUnauthorized }

// loginFailure classifies the failure of a login. A login that fails with "not found" or "forbidden" must never look as
// if the object of the request that needed the login were gone.
func loginFailure(err error) error {
	status, ok := errors.AsType[*failure.StatusError](err)
	switch {
	case !ok, errors.Is(err, failure.ErrUnavailable), errors.Is(err, failure.ErrThrottled), errors.Is(err, failure.ErrBusy):
		return err
	case refusesCredentials(status):
		return &failure.StatusError{
			Status:    http.StatusUnauthorized,
			Operation: status.Operation,
			Message:   "the credentials were rejected",
		}
	case status.Code == "" && status.Message == "":
		// VCD gives a reason. A load balancer without a working cell does not.
		return failure.Unavailable(status.Error())
	}
	return &loginError{status}
}
