// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
)

// A probe requests a page repeatedly, with a new connection each time.
type probe struct {
	cluster *realCluster
	name    string
	http    http.Client
	page    string
	stop    chan struct{}
	ended   chan struct{}

	started       time.Time
	asked, failed int
	gap           time.Duration // the longest time without a response
	outages       []outage
	vms           map[string]string // names of VMs by their ID in requests, including deleted VMs
}

// An outage is a sequence of failed requests.
type outage struct {
	started, ended time.Time
	failed         int
	reason         string // of the first failure
}

const (
	probeEvery  = 200 * time.Millisecond
	probeWithin = time.Second
	// namesEvery is the number of requests between updates of the names of VMs.
	namesEvery = 25
)

// probe starts a probe of a page of the cluster's API server, or of another server.
func (s *realCluster) probe(name, page string) *probe {
	config := s.config()
	tls, err := rest.TLSConfigFor(config)
	s.Expect(err).NotTo(HaveOccurred())
	proxy, err := url.Parse(s.q.booted.proxyURL)
	s.Expect(err).NotTo(HaveOccurred())
	if strings.HasPrefix(page, "/") {
		page = config.Host + page
	}
	p := &probe{
		cluster: s,
		name:    name,
		page:    page,
		stop:    make(chan struct{}),
		ended:   make(chan struct{}),
		started: time.Now(),
		vms:     map[string]string{},
		http: http.Client{
			Timeout: probeWithin,
			Transport: &http.Transport{
				Proxy:             http.ProxyURL(proxy),
				TLSClientConfig:   tls,
				DisableKeepAlives: true,
			},
		},
	}
	go p.run()
	return p
}

func (p *probe) run() {
	defer close(p.ended)
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	good := time.Now()
	answers := true
	for {
		if p.asked%namesEvery == 0 {
			for _, vm := range p.cluster.q.site.Simulator.State().VMs {
				p.vms[vm.ID[strings.LastIndex(vm.ID, ":")+1:]] = vm.Name
			}
		}
		asked := time.Now()
		err := p.request()
		p.asked++
		if err != nil {
			p.recordFailure(asked, answers, err)
		} else {
			good = time.Now()
		}
		answers = err == nil
		p.gap = max(p.gap, time.Since(good))
		select {
		case <-p.stop:
			return
		case <-ticker.C:
		}
	}
}

// recordFailure records a failed request. answered reports whether the previous one succeeded.
func (p *probe) recordFailure(asked time.Time, answered bool, err error) {
	p.failed++
	if answered {
		p.outages = append(p.outages, outage{started: asked, reason: err.Error()})
	}
	last := &p.outages[len(p.outages)-1]
	last.ended = time.Now()
	last.failed++
}

func (p *probe) request() error {
	res, err := p.http.Get(p.page)
	if err != nil {
		return err
	}
	_ = res.Body.Close() // only the status matters
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", res.Status)
	}
	return nil
}

// finish stops the probe and logs the outages, and the power operations on VMs in the meantime.
func (p *probe) finish(t *testing.T) {
	t.Helper()
	close(p.stop)
	<-p.ended
	t.Logf("%s: %d of %d requests failed, the longest time without a response was %s", p.name, p.failed, p.asked,
		p.gap.Round(probeEvery))
	if p.failed == 0 {
		return
	}
	for _, o := range p.outages {
		t.Logf("%s: from %s for %s %d requests failed: %s", p.name, p.since(o.started),
			o.ended.Sub(o.started).Round(100*time.Millisecond), o.failed, o.reason)
	}
	for _, r := range p.cluster.q.site.Simulator.Requests() {
		if r.Time.Before(p.started) || !strings.HasSuffix(r.Path, "/action/undeploy") && !strings.Contains(r.Path, "/power/action/") {
			continue
		}
		vm := r.Path
		for id, name := range p.vms {
			if strings.Contains(r.Path, id) {
				vm = name
			}
		}
		t.Logf("%s: at %s %s of %s", p.name, p.since(r.Time), r.Path[strings.LastIndex(r.Path, "/")+1:], vm)
	}
}

// since returns the time since the start of the probe, rounded for the log.
func (p *probe) since(at time.Time) time.Duration {
	return at.Sub(p.started).Round(100 * time.Millisecond)
}
