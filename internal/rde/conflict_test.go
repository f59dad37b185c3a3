// SPDX-License-Identifier: Apache-2.0

package rde_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/rde"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

const (
	clusterType = "urn:vcloud:type:vmware:capvcdCluster:1.1.0"
	// rounds is the number of concurrent writes.
	rounds = 1000
	// theirs are the keys of other writers.
	theirs = `"csi":{"name":"cloud-director-named-disk-csi-driver","vcdResourceSet":[{"id":"d1","n":12345678901234567890}]}`
)

// sessions returns sessions of the manager and of the cloud controller manager.
func sessions(t *testing.T) (sim *vcdsim.Simulator, manager, ccm *vcd.Session) {
	t.Helper()
	g := NewWithT(t)
	sim, err := vcdsim.New(vcdsim.Config{Model: vcdsim.K8sTenant(), Profile: vcdsim.Instant})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(sim.Start()).To(Succeed())
	t.Cleanup(func() { _ = sim.Close() })
	login := func() *vcd.Session {
		pool := vcd.NewPool(vcd.PoolOptions{RequestsPerSecond: 1e6, Burst: 1e6})
		t.Cleanup(func() { _ = pool.Close(context.WithoutCancel(t.Context())) })
		s, err := pool.Session(t.Context(), vcd.Config{
			Site:        sim.URL(),
			Org:         "acme",
			CABundle:    sim.CA(),
			Credentials: vcd.Credentials{Username: "capvcd", Password: "password"},
		})
		g.Expect(err).NotTo(HaveOccurred())
		return s
	}
	return sim, login(), login()
}

// write repeats a write until it succeeds.
func write(ctx context.Context, s *vcd.Session, id string, change func(vcd.Entity) (json.RawMessage, error)) error {
	writer := rde.Writer{In: s.Entities, Tries: 3, Pause: time.Millisecond}
	for {
		_, _, err := writer.Update(ctx, id, change)
		if !errors.Is(err, vcd.ErrChanged) {
			return err
		}
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	g := NewWithT(t)
	sim, manager, ccm := sessions(t)
	ctx := t.Context()
	content, err := rde.New(clusterType, rde.Cluster{UID: "infra-1", Name: "c1"})
	g.Expect(err).NotTo(HaveOccurred())
	content = json.RawMessage(strings.Replace(string(content), `"status":{`, `"status":{`+theirs+`,`, 1))
	id, err := manager.Entities.Create(ctx, vcd.EntitySpec{Type: clusterType, Name: "c1", Content: content})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(manager.Entities.Resolve(ctx, id)).To(BeEmpty())
	before := sectionOfCSI(t, manager, id)

	done := make(chan error, 2)
	start := make(chan struct{})
	go func() {
		for i := range rounds {
			<-start
			done <- write(ctx, manager, id, func(e vcd.Entity) (json.RawMessage, error) {
				return rde.Project(e.Type, e.Content, rde.Cluster{
					UID:   "infra-1",
					Name:  "c1",
					Pools: []rde.NodePool{{Name: "workers", Desired: int32(i)}},
				})
			})
		}
	}()
	go func() {
		for i := range rounds {
			<-start
			done <- write(ctx, ccm, id, func(e vcd.Entity) (json.RawMessage, error) {
				return rde.Merge(e.Type, e.Content, rde.Change{
					Version: "2.0.0",
					AddIPs:  []string{fmt.Sprintf("10.%d.%d.1", i/250, i%250)},
				})
			})
		}
	}()
	for range rounds {
		start <- struct{}{}
		start <- struct{}{}
		g.Expect(errors.Join(<-done, <-done)).To(Succeed())
	}

	read, err := manager.Entities.Get(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(read.Content)).To(ContainSubstring(fmt.Sprintf(`"desiredReplicas":%d`, rounds-1)))
	_, addresses := rde.Listed(read.Type, read.Content)
	g.Expect(addresses).To(HaveLen(rounds), "none is lost")
	g.Expect(sectionOfCSI(t, manager, id)).To(Equal(before), "byte for byte")
	conflicts := 0
	for _, r := range sim.Requests() {
		if r.Status == 412 {
			conflicts++
		}
	}
	t.Log("conflicts:", conflicts)
	g.Expect(conflicts).To(BeNumerically(">", 0), "the writes overlapped")
}

func sectionOfCSI(t *testing.T, s *vcd.Session, id string) string {
	t.Helper()
	g := NewWithT(t)
	read, err := s.Entities.Get(t.Context(), id)
	g.Expect(err).NotTo(HaveOccurred())
	var entity struct {
		Status struct {
			CSI json.RawMessage `json:"csi"`
		} `json:"status"`
	}
	g.Expect(json.Unmarshal(read.Content, &entity)).To(Succeed())
	g.Expect(string(entity.Status.CSI)).To(ContainSubstring("cloud-director-named-disk-csi-driver"))
	return string(entity.Status.CSI)
}
