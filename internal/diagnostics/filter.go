// SPDX-License-Identifier: Apache-2.0

// Package diagnostics protects what the manager serves to those who operate it: metrics, profiles and the level of
// logs. It does what controller-runtime's filter does, without linking the API server: a sixth of the program.
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
	// answersKept bounds how many answers of the API server are kept.
	answersKept = 1024
	allowedFor  = time.Minute
	refusedFor  = 30 * time.Second
	askTimeout  = 10 * time.Second
)

// A reviewer asks the API server whose a token is, and what its user may do.
type reviewer struct {
	tokens  authentication.TokenReviewInterface
	access  authorization.SubjectAccessReviewInterface
	answers *cache.LRUExpireCache // status codes by [question]
}

// A question is a hash of a token, a verb and a path.
type question [sha256.Size]byte

// protect returns a filter that serves a request only to a user of the Kubernetes API, known by a bearer token, who may
// use the verb on the path as a non-resource URL. It takes the rights to create TokenReviews and SubjectAccessReviews.
func protect(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := authentication.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating a client for token reviews: %w", err)
	}
	access, err := authorization.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("creating a client for access reviews: %w", err)
	}
	r := &reviewer{tokens.TokenReviews(), access.SubjectAccessReviews(), cache.NewLRUExpireCache(answersKept)}
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

// review returns the status to answer a request with, which is OK if it may be served. Failures are not kept.
func (r *reviewer) review(req *http.Request) (int, error) {
	scheme, token, _ := strings.Cut(strings.TrimSpace(req.Header.Get("Authorization")), " ")
	token = strings.TrimSpace(token)
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return http.StatusUnauthorized, nil
	}
	verb := strings.ToLower(req.Method)
	path := req.URL.Path
	key := question(sha256.Sum256([]byte(token + "\x00" + verb + "\x00" + path)))
	if known, ok := r.answers.Get(key); ok {
		if status, ok := known.(int); ok {
			return status, nil
		}
	}
	ctx, cancel := context.WithTimeout(req.Context(), askTimeout)
	defer cancel()
	status, err := r.ask(ctx, token, verb, path)
	if err != nil {
		return http.StatusInternalServerError, err
	}
	keep := refusedFor
	if status == http.StatusOK {
		keep = allowedFor
	}
	r.answers.Add(key, status, keep)
	return status, nil
}

// ask asks the API server.
func (r *reviewer) ask(ctx context.Context, token, verb, path string) (int, error) {
	who, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reviewing a token: %w", err)
	case !who.Status.Authenticated:
		return http.StatusUnauthorized, nil
	}
	user := who.Status.User
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range who.Status.User.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	may, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:                  user.Username,
		UID:                   user.UID,
		Groups:                user.Groups,
		Extra:                 extra,
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: verb, Path: path},
	}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return 0, fmt.Errorf("reviewing the access of user %s: %w", user.Username, err)
	case !may.Status.Allowed || may.Status.Denied:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
