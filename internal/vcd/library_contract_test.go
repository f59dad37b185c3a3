// SPDX-License-Identifier: Apache-2.0

package vcd_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/vcd"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim/vcdsimtest"
)

func TestCertificates(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	chain, key := vcdsimtest.SelfSigned(t)

	made, err := s.Balancers.CreateCertificate(ctx,
		vcd.CertificateSpec{Alias: "web", Description: "d", Certificate: chain, PrivateKey: key})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(made.ID).To(HavePrefix("urn:vcloud:certificateLibraryItem:"))
	g.Expect(s.Balancers.Certificates(ctx)).To(ConsistOf(made))
	_, err = s.Balancers.CreateCertificate(ctx, vcd.CertificateSpec{Alias: "web", Certificate: chain, PrivateKey: key})
	g.Expect(err).To(MatchError(vcd.ErrConflict))
	_, err = s.Balancers.CreateCertificate(ctx,
		vcd.CertificateSpec{Alias: "bad", Certificate: []byte("x"), PrivateKey: key})
	g.Expect(err).To(MatchError(vcd.ErrInvalid))
	g.Expect(fmt.Sprintf("%v %+v %#v", vcd.CertificateSpec{PrivateKey: key}, vcd.CertificateSpec{PrivateKey: key},
		vcd.CertificateSpec{PrivateKey: key})).
		NotTo(ContainSubstring("KEY"))

	g.Expect(s.Balancers.DeleteCertificate(ctx, made.ID)).To(Succeed())
	g.Expect(s.Balancers.Certificates(ctx)).To(BeEmpty())
}

func TestEntitiesAreWrittenOnlyIfUnchanged(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	id := "urn:vcloud:entity:vmware:capvcdCluster:11111111-2222-4333-8444-555555555555"
	org := to.sim.State().Model.Orgs[1].ID
	var owner string
	for _, u := range to.sim.State().Model.Orgs[1].Users {
		if u.Name == to.config.Credentials.Username {
			owner = u.ID
		}
	}
	to.sim.Edit(func(e *vcdsim.Editor) {
		e.AddDocument("1.0.0/entities", "entity", org, "", map[string]any{
			"id":         id,
			"name":       "c",
			"entityType": "urn:vcloud:type:vmware:capvcdCluster:1.1.0",
			"state":      "PRE_CREATED",
			"owner":      map[string]any{"id": "urn:vcloud:user:" + owner},
			"entity":     map[string]any{"kind": "CAPVCDCluster", "foreign": "<&> ä"},
		})
	})

	read, err := s.Entities.Get(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]any{
		read.ID, read.Name, read.Type,
		read.State,
	}).To(Equal([]any{id, "c", "urn:vcloud:type:vmware:capvcdCluster:1.1.0", "PRE_CREATED"}))
	g.Expect(read.ETag).NotTo(BeEmpty())
	g.Expect(string(read.Content)).To(MatchJSON(`{"kind":"CAPVCDCluster","foreign":"<&> ä"}`))
	written, err := s.Entities.Update(ctx, read, []byte(`{"kind":"CAPVCDCluster","foreign":"<&> ä","status":{}}`))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(written.ETag).NotTo(Equal(read.ETag))
	g.Expect(string(written.Content)).To(ContainSubstring("status"))

	_, err = s.Entities.Update(ctx, read, []byte(`{}`))
	g.Expect(err).To(MatchError(vcd.ErrChanged))
	_, err = s.Entities.Update(ctx, written, []byte(`{"kind":"CAPVCDCluster"}`))
	g.Expect(err).NotTo(HaveOccurred())
	_, err = s.Entities.Get(ctx, "urn:vcloud:entity:vmware:capvcdCluster:99999999-2222-4333-8444-555555555555")
	g.Expect(err).To(MatchError(vcd.ErrForbidden))
}

func TestAnEntityIsCreatedResolvedFoundAndDeleted(t *testing.T) {
	g := NewWithT(t)
	ctx := t.Context()
	to := newEdge(t, vcdsim.K8sTenant())
	s := to.session(t)
	kind := vcd.EntityKind{Vendor: "vmware", NSS: "capvcdCluster"}
	const least = `{"kind":"CAPVCDCluster","apiVersion":"capvcd.vmware.com/v1.1","metadata":{},"spec":{}}`
	spec := vcd.EntitySpec{
		Type:       "urn:vcloud:type:vmware:capvcdCluster:1.1.0",
		Name:       "c",
		ExternalID: "infra-1",
		Content:    []byte(least),
	}

	g.Expect(s.Entities.Types(ctx, kind)).To(ContainElement("1.1.0"))
	id, err := s.Entities.Create(ctx, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(id).To(HavePrefix("urn:vcloud:entity:vmware:capvcdCluster:"))
	g.Expect(s.Entities.Find(ctx, kind, "c", "infra-1")).To(ConsistOf(vcd.Ref{ID: id, Name: "c"}))
	g.Expect(s.Entities.Find(ctx, kind, "c", "infra-2")).To(BeEmpty())
	g.Expect(s.Entities.Delete(ctx, id)).NotTo(Succeed(), "it is unresolved")
	g.Expect(s.Entities.Resolve(ctx, id)).To(BeEmpty())
	read, err := s.Entities.Get(ctx, id)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{read.State, read.ExternalID, read.Org.Name}).To(Equal(
		[]string{vcd.EntityResolved, "infra-1", "acme"}))

	_, err = s.Entities.Update(ctx, read, []byte(`{"kind":5}`))
	g.Expect(err).To(MatchError(vcd.ErrInvalid))
	g.Expect(s.Entities.Delete(ctx, id)).To(Succeed())
	g.Expect(s.Entities.Find(ctx, kind, "c", "infra-1")).To(BeEmpty())

	spec.Content = []byte(`{"kind":5}`)
	id, err = s.Entities.Create(ctx, spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(s.Entities.Resolve(ctx, id)).To(ContainSubstring("#/kind"))
	spec.Type = "urn:vcloud:type:vmware:capvcdCluster:9.0.0"
	_, err = s.Entities.Create(ctx, spec)
	g.Expect(err).To(MatchError(vcd.ErrForbidden))
}
