// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/client-go/rest"
)

// apiServer authenticates one user by a token, and authorizes the user for /metrics and all paths below /debug/.
type apiServer struct {
	*httptest.Server

	mu      sync.Mutex
	fails   bool
	reviews []string
}

func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.reviews = append(s.reviews, kind)
	w.Header().Set("Content-Type", "application/json")
	if s.fails {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	if kind == "tokenreviews" {
		review := &authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(review)
		review.Status.Authenticated = review.Spec.Token != "unknown"
		review.Status.User = authenticationv1.UserInfo{
			Username: review.Spec.Token,
			UID:      "1",
			Groups:   []string{"monitoring"},
			Extra:    map[string]authenticationv1.ExtraValue{"pod": {"a"}},
		}
		_ = json.NewEncoder(w).Encode(review)
		return
	}
	review := &authorizationv1.SubjectAccessReview{}
	_ = json.NewDecoder(r.Body).Decode(review)
	what := review.Spec.NonResourceAttributes
	review.Status.Allowed = review.Spec.User == "prometheus" && review.Spec.UID == "1" &&
		review.Spec.Groups[0] == "monitoring" && review.Spec.Extra["pod"][0] == "a" &&
		what.Verb == "get" && what.Path == "/metrics"
	review.Status.Denied = review.Spec.User == "denied"
	review.Status.Allowed = review.Status.Allowed || review.Status.Denied
	_ = json.NewEncoder(w).Encode(review)
}

func (s *apiServer) setFailing(fails bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails = fails
	s.reviews = nil
}

func (s *apiServer) protected(t *testing.T) func(method, path, authorization string) int {
	t.Helper()
	g := NewWithT(t)
	config := &rest.Config{Host: s.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	filter, err := protect(config, s.Client())
	g.Expect(err).NotTo(HaveOccurred())
	handler, err := filter(logr.Discard(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	g.Expect(err).NotTo(HaveOccurred())
	return func(method, path, authorization string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("Authorization", authorization)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
}

func TestOnlyAuthorizedUsersAreServed(t *testing.T) {
	request := newAPIServer(t).protected(t)
	for _, tt := range []struct {
		name, method, path, authorization string
		status                            int
	}{
		{"an authorized user", http.MethodGet, "/metrics", "Bearer prometheus", http.StatusOK},
		{"a scheme in another case", http.MethodGet, "/metrics", "bearer  prometheus ", http.StatusOK},
		{"a permission for another path", http.MethodGet, "/debug/pprof/", "Bearer prometheus", http.StatusForbidden},
		{"a permission for another verb", http.MethodPut, "/metrics", "Bearer prometheus", http.StatusForbidden},
		{"another user", http.MethodGet, "/metrics", "Bearer other", http.StatusForbidden},
		{"a denial takes precedence", http.MethodGet, "/metrics", "Bearer denied", http.StatusForbidden},
		{"an unknown token", http.MethodGet, "/metrics", "Bearer unknown", http.StatusUnauthorized},
		{"no token", http.MethodGet, "/metrics", "", http.StatusUnauthorized},
		{"an empty token", http.MethodGet, "/metrics", "Bearer ", http.StatusUnauthorized},
		{"a password", http.MethodGet, "/metrics", "Basic cHJvbWV0aGV1czp4", http.StatusUnauthorized},
	} {
		t.Run(tt.name, func(t *testing.T) {
			NewWithT(t).Expect(request(tt.method, tt.path, tt.authorization)).To(Equal(tt.status))
		})
	}
}

func TestAPIServerResponsesAreCached(t *testing.T) {
	g := NewWithT(t)
	s := newAPIServer(t)
	request := s.protected(t)
	for range 3 {
		g.Expect(request(http.MethodGet, "/metrics", "Bearer prometheus")).To(Equal(http.StatusOK))
		g.Expect(request(http.MethodGet, "/metrics", "Bearer unknown")).To(Equal(http.StatusUnauthorized))
	}
	g.Expect(s.reviews).To(Equal([]string{"tokenreviews", "subjectaccessreviews", "tokenreviews"}))

	s.setFailing(true)
	g.Expect(request(http.MethodGet, "/metrics", "Bearer prometheus")).To(Equal(http.StatusOK))
	g.Expect(request(http.MethodGet, "/debug/pprof/", "Bearer prometheus")).To(Equal(http.StatusInternalServerError))
	s.setFailing(false)
	g.Expect(request(http.MethodGet, "/debug/pprof/", "Bearer prometheus")).To(Equal(http.StatusForbidden),
		"a failure is not cached")
}

func TestTheLogLevelIsSetByPut(t *testing.T) {
	for _, tt := range []struct {
		method, body string
		status       int
	}{
		{http.MethodPut, "0", http.StatusOK},
		{http.MethodPut, "much", http.StatusBadRequest},
		{http.MethodPut, strings.Repeat("0", maxLevel+1), http.StatusBadRequest},
		{http.MethodGet, "", http.StatusMethodNotAllowed},
	} {
		w := httptest.NewRecorder()
		body := strings.NewReader(tt.body)
		setLogLevel(w, httptest.NewRequestWithContext(t.Context(), tt.method, "/debug/flags/v", body))
		NewWithT(t).Expect(w.Code).To(Equal(tt.status), "%s %s", tt.method, tt.body)
	}
}
