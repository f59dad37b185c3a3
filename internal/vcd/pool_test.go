// SPDX-License-Identifier: Apache-2.0

package vcd

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

func TestEqualConfigsShareASession(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	pool := NewPool(PoolOptions{})
	sessions := make([]*Session, 10)

	var wg sync.WaitGroup
	for i := range sessions {
		wg.Go(func() { sessions[i], _ = pool.Session(t.Context(), f.config()) })
	}
	wg.Wait()

	for _, s := range sessions {
		g.Expect(s).To(BeIdenticalTo(sessions[0]))
	}
	g.Expect(f.count(opLogin)).To(Equal(1))
	g.Expect(f.count("GET /api/versions")).To(Equal(1))
	g.Expect(sessions[0].Site()).To(Equal(f.URL))
	g.Expect(sessions[0].Org()).To(Equal("acme"))
}

func TestIncorrectPasswordsAreTriedOncePerVersion(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	pool := NewPool(PoolOptions{})
	config := f.config()
	config.Credentials.Password = "canary-wrong"

	for range 3 {
		_, err := pool.Session(t.Context(), config)
		g.Expect(err).To(MatchError(ErrUnauthorized))
		g.Expect(err.Error()).To(Equal("logging in to organization acme of " + f.URL + ": the credentials were rejected (HTTP 401)"))
	}
	g.Expect(f.count(opLogin)).To(Equal(1))

	config.Version = "2"
	_, err := pool.Session(t.Context(), config)
	g.Expect(err).To(MatchError(ErrUnauthorized))
	g.Expect(f.count(opLogin)).To(Equal(2))

	config.Version = "3"
	f.setPassword("canary-wrong")
	_, err = pool.Session(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
}

// A session may keep the rights that its user had when it started.
func TestAForbiddenWriteIsRepeatedInANewSession(t *testing.T) {
	const powerOn = "POST /api/vApp/vm-{id}/power/action/powerOn"
	g := NewWithT(t)
	f := newFakeVCD(t)
	clock := newFakeClock()
	f.on(powerOn, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	s, err := NewPool(PoolOptions{Clock: clock, RequestsPerSecond: 1000, Burst: 1000}).Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())
	logins := func() int {
		_, err := s.VMs.PowerOn(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrForbidden))
		return f.count(opLogin)
	}

	g.Expect(logins()).To(Equal(1))
	clock.Advance(10 * time.Second)
	g.Expect(logins()).To(Equal(2))
	g.Expect(logins()).To(Equal(2), "not every call")
	clock.Advance(20 * time.Second)
	g.Expect(logins()).To(Equal(3))
	for range 24 * 60 {
		clock.Advance(time.Minute)
		logins()
	}
	g.Expect(logins()).To(BeNumerically("<", 60), "in a day: a permanently missing right")
}

func TestAPasswordChangedInVCDIsTriedOnce(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f)
	f.setPassword("new")
	f.expire()

	for range 3 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnauthorized))
	}

	g.Expect(f.count(opLogin)).To(Equal(2))
	g.Expect(f.count(opVM)).To(Equal(1))
}

func TestALoginNotFoundErrorIsNoProofOfAbsence(t *testing.T) {
	for _, status := range []int{http.StatusNotFound, http.StatusForbidden, http.StatusGone, http.StatusBadRequest} {
		t.Run(http.StatusText(status)+" of something in front of VCD passes", func(t *testing.T) {
			g := NewWithT(t)
			f := newFakeVCD(t)
			f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })

			_, err := NewPool(PoolOptions{}).Session(t.Context(), f.config())

			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err).NotTo(MatchError(ErrNotFound))
		})
		t.Run(http.StatusText(status)+" of VCD itself keeps the user out for a while", func(t *testing.T) {
			g := NewWithT(t)
			clock := newFakeClock()
			f := newFakeVCD(t)
			f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) {
				xmlError(w, status, "X", "This user is disabled.")
			})
			pool := NewPool(PoolOptions{Clock: clock})

			for range 3 {
				_, err := pool.Session(t.Context(), f.config())
				g.Expect(err).To(MatchError(ErrUnauthorized))
				g.Expect(err).NotTo(MatchError(ErrNotFound))
				g.Expect(err).NotTo(MatchError(ErrForbidden))
				g.Expect(err).To(MatchError(ContainSubstring("This user is disabled.")))
			}
			g.Expect(f.count(opLogin)).To(Equal(1))
			f.on(opLogin, nil)
			clock.Advance(10 * time.Minute)

			_, err := pool.Session(t.Context(), f.config())

			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

func TestWorkingCredentialsAreRetriedAfterARejection(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	pool := NewPool(PoolOptions{Clock: clock, RequestsPerSecond: 1000, Burst: 1000})
	s, err := pool.Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())
	f.setPassword("not now")
	f.expire()

	var tried []time.Duration
	for passed := time.Duration(0); passed < 4*time.Hour; passed += 5 * time.Minute {
		before := f.count(opLogin)
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnauthorized))
		if f.count(opLogin) > before {
			tried = append(tried, passed)
		}
		clock.Advance(5 * time.Minute)
	}
	g.Expect(tried).To(Equal([]time.Duration{
		0,
		10 * time.Minute,
		30 * time.Minute,
		70 * time.Minute,
		130 * time.Minute,
		190 * time.Minute,
	}))
	f.setPassword(password)
	clock.Advance(time.Hour)

	_, err = pool.Session(t.Context(), f.config())

	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
}

func TestCredentialsThatNeverWorkedAreNotRetried(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	pool := NewPool(PoolOptions{Clock: clock})
	config := f.config()
	config.Credentials.Password = "canary-wrong"

	for range 100 {
		_, err := pool.Session(t.Context(), config)
		g.Expect(err).To(MatchError(ErrUnauthorized))
		clock.Advance(10 * time.Minute)
	}

	g.Expect(f.count(opLogin)).To(Equal(1))
}

func TestAnUnknownAPITokenIsRejected(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on("POST /oauth/tenant/{org}/token", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		reply(w, `{"error":"invalid_grant","error_description":"Unknown token"}`)
	})
	pool := NewPool(PoolOptions{Clock: clock})
	config := f.config()
	config.Credentials.APIToken = apiToken

	for range 3 {
		_, err := pool.Session(t.Context(), config)
		g.Expect(err).To(MatchError(ErrUnauthorized))
		clock.Advance(20 * time.Minute)
	}

	g.Expect(f.count("POST /oauth/tenant/{org}/token")).To(Equal(1))
}

func TestAnotherServerIsNotVCD(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.on("GET /api/versions", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) })

	_, err := NewPool(PoolOptions{}).Session(t.Context(), f.config())

	g.Expect(err).To(MatchError(ErrUnavailable))
	g.Expect(err).NotTo(MatchError(ErrNotFound))
	g.Expect(err.Error()).To(HavePrefix("requesting the API versions: " + f.URL + " answers: "))
}

func TestTheCauseOfAnUnreachableSiteIsReportedOnce(t *testing.T) {
	f := newFakeVCD(t)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	f.on("GET /api/versions", func(http.ResponseWriter, *http.Request) { <-done })
	for _, tt := range []struct {
		name, site string
		want       string
	}{
		{"silent", f.URL, " did not respond within 50ms"},
		{"refusing", "https://127.0.0.1:1", " cannot be reached: connection refused"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := NewWithT(t)
			config := f.config()
			config.Site = tt.site

			_, err := NewPool(PoolOptions{RequestTimeout: 50 * time.Millisecond}).Session(t.Context(), config)

			g.Expect(err).To(MatchError(ErrUnavailable))
			g.Expect(err.Error()).To(Equal("requesting the API versions: " + tt.site + tt.want))
		})
	}
}

func TestAnOutageAtLoginIsCachedBriefly(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	pool := NewPool(PoolOptions{Clock: clock, RequestsPerSecond: 1000, Burst: 1000})
	f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	for range 10 {
		_, err := pool.Session(t.Context(), f.config())
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	g.Expect(f.count(opLogin)).To(Equal(1))

	for range 20 {
		clock.Advance(45 * time.Second)
		_, err := pool.Session(t.Context(), f.config())
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	g.Expect(f.count(opLogin)).To(Equal(21), "at most 45 seconds apart")
	f.on(opLogin, nil)
	clock.Advance(45 * time.Second)

	_, err := pool.Session(t.Context(), f.config())

	g.Expect(err).NotTo(HaveOccurred())
}

func TestShortLivedSessionsAreNotRejectedCredentials(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })
	f.expire()
	f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Vmware-Vcloud-Access-Token", "canary-forgotten")
	})

	for range 10 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable))
		g.Expect(err).NotTo(MatchError(ErrUnauthorized))
	}
	g.Expect(f.count(opLogin)).To(Equal(2), "one at first and one more")
	for range 12 {
		clock.Advance(5 * time.Second)
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).To(MatchError(ErrUnavailable))
	}
	g.Expect(f.count(opLogin)).To(BeNumerically("<=", 2+2*9), "with backoff")

	f.on(opLogin, nil)
	clock.Advance(time.Minute)
	g.Expect(s.VMs.VM(t.Context(), testVM)).To(HaveField("Name", "cp-0"))
}

func TestTokensAreReplacedBeforeTheyExpire(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		claims := fmt.Sprintf(`{"exp":%d,"n":%q}`, clock.Now().Add(time.Hour).Unix(), f.issue())
		token := "x." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".y"
		f.valid[token] = true
		w.Header().Set("X-Vmware-Vcloud-Access-Token", token)
	})
	s := session(t, f, func(o *PoolOptions) { o.Clock = clock })

	clock.Advance(54 * time.Minute)
	_, err := s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.count(opLogin)).To(Equal(1))

	clock.Advance(2 * time.Minute)
	_, err = s.VMs.VM(t.Context(), testVM)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(f.count(opLogin)).To(Equal(2))
	g.Expect(f.count(opVM)).To(Equal(2), "no call was rejected")
}

func TestATokenFromASlowClockIsUsed(t *testing.T) {
	g := NewWithT(t)
	claims := base64.RawURLEncoding.EncodeToString([]byte(`{"exp":1000}`))
	f := newFakeVCD(t)
	f.on(opVM, answerVM)
	f.on(opLogin, func(w http.ResponseWriter, _ *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.valid["x."+claims+".y"] = true
		w.Header().Set("X-Vmware-Vcloud-Access-Token", "x."+claims+".y")
	})
	s := session(t, f)

	for range 3 {
		_, err := s.VMs.VM(t.Context(), testVM)
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(f.count(opLogin)).To(Equal(1))
}

func TestClosingLogsOut(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	loggedOut := 0
	f.on("DELETE /api/session", func(w http.ResponseWriter, _ *http.Request) {
		loggedOut++
		w.WriteHeader(http.StatusNoContent)
	})
	pool := NewPool(PoolOptions{})
	_, err := pool.Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())

	g.Expect(pool.Close(t.Context())).To(Succeed())

	g.Expect(loggedOut).To(Equal(1))
	g.Expect(pool.Close(t.Context())).To(Succeed())
	g.Expect(loggedOut).To(Equal(1))
}

func TestIdleSessionsAreLoggedOut(t *testing.T) {
	g := NewWithT(t)
	clock := newFakeClock()
	f := newFakeVCD(t)
	f.on("DELETE /api/session", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	pool := NewPool(PoolOptions{Clock: clock})
	old, err := pool.Session(t.Context(), f.config())
	g.Expect(err).NotTo(HaveOccurred())
	changed := f.config()
	changed.Credentials.Password = "new"
	f.setPassword("new")
	clock.Advance(31 * time.Minute)

	s, err := pool.Session(t.Context(), changed)

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s).NotTo(BeIdenticalTo(old))
	g.Eventually(func() int { return f.count("DELETE /api/session") }).Should(Equal(1))
}

func TestSystemAdministratorsLogInElsewhereAndSelectATenant(t *testing.T) {
	g := NewWithT(t)
	f := newFakeVCD(t)
	f.passwords["administrator@System"] = password
	f.on("POST /cloudapi/1.0.0/sessions/provider", f.serveLogin)
	f.on("GET /api/query?type=organization", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, `<QueryResultRecords total="1"><OrgRecord name="acme" href="https://x/api/org/55555555-5555-4555-8555-555555555555"/></QueryResultRecords>`)
	})
	f.on(opVM, func(w http.ResponseWriter, r *http.Request) {
		g.Expect(r.Header.Get("X-Vmware-Vcloud-Tenant-Context")).To(Equal("55555555-5555-4555-8555-555555555555"))
		answerVM(w, r)
	})
	config := f.config()
	config.Credentials.Username = "System/administrator"
	f.valid[""] = false

	s, err := NewPool(PoolOptions{}).Session(t.Context(), config)
	g.Expect(err).NotTo(HaveOccurred())
	for range 2 {
		_, err = s.VMs.VM(t.Context(), testVM)
		g.Expect(err).NotTo(HaveOccurred())
	}

	g.Expect(f.count("GET /api/query?type=organization")).To(Equal(1))
	_, err = s.Inventory.QueryVM(t.Context(), testVM)
	g.Expect(err).To(HaveOccurred())
	g.Expect(f.count("GET /api/query?type=adminVM")).To(Equal(1))
}

func TestCredentialsCannotBePrinted(t *testing.T) {
	g := NewWithT(t)
	config := Config{Site: "https://x", Credentials: Credentials{Username: "u", Password: password, APIToken: apiToken}}

	asJSON, err := json.Marshal(config)

	g.Expect(err).NotTo(HaveOccurred())
	for _, text := range []string{
		string(asJSON),
		fmt.Sprintf("%v", config),
		fmt.Sprintf("%+v", config),
		fmt.Sprintf("%#v", config),
	} {
		g.Expect(text).NotTo(ContainSubstring("canary"))
		g.Expect(text).To(ContainSubstring("https://x"))
	}
}
