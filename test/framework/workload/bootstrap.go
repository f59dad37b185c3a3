// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/vcdsim"
)

// check returns an error if kubeadm would fail now. An error that wraps errWaiting is temporary.
func (w *Workloads) check(p *plan) error {
	w.lock.Lock()
	c := w.clusters[p.endpoint]
	w.lock.Unlock()
	switch {
	case p.init && c != nil:
		return fmt.Errorf("kubeadm init: %s is already in use by cluster %s", p.endpoint, c.name)
	case p.init:
		return nil
	case c == nil:
		return fmt.Errorf("kubeadm join: %w for a control plane at %s, which does not respond", errWaiting, p.endpoint)
	case c.up() == "":
		return fmt.Errorf("kubeadm join: %w for a control plane of cluster %s at %s, none is running", errWaiting,
			c.name, p.endpoint)
	}
	if err := c.checkAuthorities(p); err != nil {
		return err
	}
	return w.checkToken(c, p.token)
}

// checkAuthorities returns an error if a joining node does not trust the certificate authority of the cluster, or has
// different certificate authorities.
func (c *cluster) checkAuthorities(p *plan) error {
	if !p.anyCA && !c.ca.pinned(p.caHashes) {
		return fmt.Errorf("kubeadm join: the cluster at %s has CA %s, which caCertHashes does not pin", p.endpoint,
			c.ca.hash())
	}
	if p.controlPlane && (!p.ca.cert.Equal(c.ca.cert) || !p.etcdCA.cert.Equal(c.etcdCA.cert)) {
		return fmt.Errorf("kubeadm join: the certificate authorities written to /etc/kubernetes/pki are not those of the cluster at %s", p.endpoint)
	}
	return nil
}

// checkToken returns an error if Cluster API has not created the bootstrap token in the cluster.
func (w *Workloads) checkToken(c *cluster, token string) error {
	id, secretPart, _ := strings.Cut(token, ".")
	secret := &corev1.Secret{}
	err := c.client.Get(w.ctx, client.ObjectKey{Namespace: metav1.NamespaceSystem, Name: "bootstrap-token-" + id},
		secret)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("kubeadm join: %w for bootstrap token %s, which does not exist in cluster %s", errWaiting, id,
			c.name)
	}
	if err != nil {
		return fmt.Errorf("kubeadm join: reading bootstrap token %s: %w", id, err)
	}
	if string(secret.Data["token-secret"]) != secretPart {
		return fmt.Errorf("kubeadm join: bootstrap token %s has another secret in cluster %s", id, c.name)
	}
	if text := string(secret.Data["expiration"]); text != "" {
		if until, err := time.Parse(time.RFC3339, text); err != nil || time.Now().After(until) {
			return fmt.Errorf("kubeadm join: bootstrap token %s of cluster %s has expired", id, c.name)
		}
	}
	return nil
}

// kubeadm simulates kubeadm init or join, and records the result in the phase of the machine.
func (w *Workloads) kubeadm(m *machine) error {
	c, err := w.clusterFor(m.plan)
	if err == nil {
		if err = w.join(m, c); err != nil && m.plan.init {
			w.endCluster(c)
		}
	}
	switch {
	case err == nil:
		w.lock.Lock()
		m.done = true
		m.cluster = c
		m.Node = m.plan.node.name
		m.Cluster = c.name
		w.lock.Unlock()
		w.setPhase(m, PhaseRunning, "")
		if len(m.plan.published) > 0 && m.host != nil {
			m.host.Report(vcdsim.GuestReport{ExtraConfig: m.plan.published})
		}
		return nil
	case isWaiting(err):
		w.setPhase(m, PhaseBootstrapping, err.Error())
		return err
	default:
		return w.fail(m, err)
	}
}

// clusterFor returns the cluster to join, or creates one for init.
func (w *Workloads) clusterFor(p *plan) (*cluster, error) {
	if err := w.check(p); err != nil {
		return nil, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	c := w.clusters[p.endpoint]
	switch {
	case !p.init && c == nil:
		return nil, fmt.Errorf("kubeadm join: %w for a control plane at %s", errWaiting, p.endpoint)
	case !p.init:
		return c, nil
	case c != nil:
		return nil, fmt.Errorf("kubeadm init: %s is already in use by cluster %s", p.endpoint, c.name)
	}
	w.groups++
	c, err := newCluster(w.manager, fmt.Sprintf("%s#%d", p.endpoint, w.groups), p)
	if err != nil {
		return nil, fmt.Errorf("kubeadm init: %w", err)
	}
	w.clusters[p.endpoint] = c
	return c, nil
}

// join adds a node to a cluster. For a control plane node it also adds the static pods and the etcd member.
func (w *Workloads) join(m *machine, c *cluster) error {
	p := m.plan
	version := m.plan.version
	if version == "" {
		version = c.version
	}
	existing := &corev1.Node{}
	if err := c.client.Get(w.ctx, client.ObjectKey{Name: p.node.name}, existing); err == nil {
		return fmt.Errorf("kubeadm: a node called %s exists already in cluster %s", p.node.name, c.name)
	}
	if p.init {
		if err := c.createClusterObjects(w.ctx, p); err != nil {
			return err
		}
	}
	if err := c.createNode(w.ctx, p.node, version); err != nil {
		return err
	}
	if !p.controlPlane {
		return nil
	}
	if err := c.addMember(p.node.name); err != nil {
		return err
	}
	if err := c.createStaticPods(w.ctx, p, version); err != nil {
		return err
	}
	return c.setMember(w.ctx, p.node.name, true)
}
