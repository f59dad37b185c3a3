// SPDX-License-Identifier: Apache-2.0

// Package diagnostics protects the endpoints for operators of the manager: metrics, profiles and the log level. It does
// the same as the filter of controller-runtime without linking the API server, which would be a sixth of the program.
package diagnostics

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authentication "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	// maxDecisions limits the number of cached decisions of the API server.
	maxDecisions  = 1024
	allowedFor    = time.Minute
	refusedFor    = 30 * time.Second
	reviewTimeout = 10 * time.Second
)

// A reviewer authenticates tokens and authorizes their users with the API server.
type reviewer struct {
	tokens    authentication.TokenReviewInterface
	access    authorization.SubjectAccessReviewInterface
	decisions *cache.LRUExpireCache // HTTP status codes by [requestKey]
}

// A requestKey is the hash of a token, a verb and a path.
type requestKey [sha256.Size]byte

// protect returns a filter that serves a request only if its bearer token belongs to an authorized user of the
// Kubernetes API. The user must be allowed to use the verb on the path as a non-resource URL. The filter requires
// permission to create TokenReviews and SubjectAccessReviews.
func protect(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := authentication.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating a client for token reviews: %w", err)
	}
	access, err := authorization.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating a client for access reviews: %w", err)
	}
	r := &reviewer{tokens.TokenReviews(), access.SubjectAccessReviews(), cache.NewLRUExpireCache(maxDecisions)}
	return r.filter, nil
}

// filter implements [metricsserver.Filter].
func (r *reviewer) filter(log logr.Logger, next http.Handler) (http.Handler, error) {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		status, err := r.review(req)
		if err != nil {
			log.Error(err, "Rejecting a request that the API server could not authorize", "path", req.URL.Path)
		}
		if status != http.StatusOK {
			http.Error(w, http.StatusText(status), status)
			return
		}
		next.ServeHTTP(w, req)
	}), nil
}

// review returns the HTTP status for a request, which is 200 if the request may be served. It does not cache failures.
func (r *reviewer) review(req *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	verb := strings.ToLower(req.Method)
	path := req.URL.Path
	key := requestKey(sha256.Sum256([]byte(token + "\x00" + verb + "\x00" + path)))
	if known, ok := r.decisions.Get(key); ok {
		if status, ok := known.(int); ok {
			return status, nil
		}
	}
	ctx, cancel := context.WithTimeout(req.Context(), reviewTimeout)
	defer cancel()
	status, err := r.decide(ctx, token, verb, path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	keep := refusedFor
	if status == http.StatusOK {
		keep = allowedFor
	}
	r.decisions.Add(key, status, keep)
	return status, nil
}

// decide returns the decision of the API server as an HTTP status.
func (r *reviewer) decide(ctx context.Context, token, verb, path string) (int, error) {
	tokenReview, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reviewing a token: %w", err)
	case !tokenReview.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	user := tokenReview.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range tokenReview.Status.User.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	accessReview, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  user.Username,
			UID:                   user.UID,
			Groups:                user.Groups,
			Extra:                 extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
		},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reviewing the access of user %s: %w", user.Username, err)
	case !accessReview.Status.Allowed || accessReview.Status.Denied:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
