// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/api/v1beta4"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/addon"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/capicluster"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/controllers/internal/index"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/phases"
)

// approvedReason is the reason of the Approved condition of a request.
const approvedReason = "MachineVerified"

const (
	// pageSize is the number of requests in one page of a list.
	pageSize = 500
	// maxPages bounds a list, because tenants may create any number of requests.
	maxPages = 100
	// maxPerUser is the number of open requests of a user that are considered, the newest ones. A kubelet only waits for its
	// last request, and old ones stay open for a day.
	maxPerUser = 5
)

// approveAll approves the open requests of the cluster's Nodes. It denies none, because a request that must not be
// approved yet may become valid once VCD shows an address.
func approveAll(ctx context.Context, s *scope) (phases.Result, error) {
	if !capicluster.Initialized(s.cluster) {
		return phases.Wait(poll, infrav1.WaitingForControlPlaneReason, "Waiting for the control plane to be initialized"), nil
	}
	guest, err := s.reconciler.Workload(ctx, client.ObjectKeyFromObject(s.cluster))
	if err != nil {
		return addon.ResultOf(ctx, err, retry), nil
	}
	open, err := openRequests(ctx, guest)
	if err != nil {
		return addon.ResultOf(ctx, err, retry), nil
	}
	if len(open) == 0 {
		return phases.Done, nil
	}
	nodes, err := s.identities(ctx)
	if err != nil {
		return phases.Done, err
	}
	var left []string
	for i := range open {
		csr := &open[i]
		node, why := verdict(csr, nodes)
		if why != nil {
			left = append(left, fmt.Sprintf("%s: %v", csr.Name, why))
			continue
		}
		if err := approve(ctx, guest, csr); err != nil {
			return addon.ResultOf(ctx, err, retry), nil
		}
		approved(s.reconciler.Recorder, s.vcdCluster, node)
	}
	if len(left) > 0 {
		slices.Sort(left)
		return phases.Warn(infrav1.ServingCertificateNotApprovedReason,
			"Certificate signing requests of kubelets are not approved: %s", phases.Few(left)), nil
	}
	return phases.Done, nil
}

// openRequests returns the newest open requests of each kubelet.
func openRequests(ctx context.Context, guest client.Client) ([]certificatesv1.CertificateSigningRequest, error) {
	byUser := map[string][]certificatesv1.CertificateSigningRequest{}
	more := ""
	for range maxPages {
		page := &certificatesv1.CertificateSigningRequestList{}
		ofKubelets := client.MatchingFields{"spec.signerName": certificatesv1.KubeletServingSignerName}
		if err := guest.List(ctx, page, ofKubelets, client.Limit(pageSize), client.Continue(more)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			if csr := page.Items[i]; isOpen(&csr) {
				byUser[csr.Spec.Username] = newest(append(byUser[csr.Spec.Username], csr))
			}
		}
		if more = page.Continue; more == "" {
			break
		}
	}
	var open []certificatesv1.CertificateSigningRequest
	for _, user := range slices.Sorted(maps.Keys(byUser)) {
		open = append(open, byUser[user]...)
	}
	return open, nil
}

// newest returns the newest requests, at most [maxPerUser].
func newest(requests []certificatesv1.CertificateSigningRequest) []certificatesv1.CertificateSigningRequest {
	slices.SortStableFunc(requests, func(a, b certificatesv1.CertificateSigningRequest) int {
		return b.CreationTimestamp.Compare(a.CreationTimestamp.Time)
	})
	return requests[:min(len(requests), maxPerUser)]
}

// verdict returns the Node of a request, and why the request must not be approved; nil if it may be approved.
func verdict(csr *certificatesv1.CertificateSigningRequest, nodes map[string]identity) (node string, why error) {
	node, err := nodeOf(csr)
	if err != nil {
		return "", err
	}
	known, ok := nodes[node]
	if !ok {
		return node, fmt.Errorf("no Machine of the cluster has Node %s", node)
	}
	return node, check(csr, node, known)
}

// approve approves a request. A request that was changed meanwhile, or is gone, is left to the next pass.
func approve(ctx context.Context, guest client.Client, csr *certificatesv1.CertificateSigningRequest) error {
	ctrl.LoggerFrom(ctx).Info("Approving the serving certificate of a kubelet", "request", csr.Name)
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type:           certificatesv1.CertificateApproved,
		Status:         corev1.ConditionTrue,
		Reason:         approvedReason,
		Message:        "The names and addresses are those of the machine in VMware Cloud Director",
		LastUpdateTime: metav1.Now(),
	})
	err := guest.SubResource("approval").Update(ctx, csr)
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("approving request %s: %w", csr.Name, err)
	}
	return nil
}

// identities returns the identities of the cluster's machines, by the names of their Nodes. Machines in deletion are
// not included, so their Nodes get no certificates.
func (s *scope) identities(ctx context.Context) (map[string]identity, error) {
	ofCluster := index.OfCluster(s.cluster.Name)
	inNamespace := client.InNamespace(s.vcdCluster.Namespace)
	vcdMachines := &infrav1.VCDMachineList{}
	if err := s.reconciler.Client.List(ctx, vcdMachines, inNamespace, ofCluster); err != nil {
		return nil, fmt.Errorf("listing VCDMachines: %w", err)
	}
	machines := &clusterv1.MachineList{}
	if err := s.reconciler.Client.List(ctx, machines, inNamespace, ofCluster); err != nil {
		return nil, fmt.Errorf("listing Machines: %w", err)
	}
	nodeNames := map[string]string{}
	for _, m := range machines.Items {
		nodeNames[m.Spec.InfrastructureRef.Name] = m.Status.NodeRef.Name
	}
	known := map[string]identity{}
	for i := range vcdMachines.Items {
		m := &vcdMachines.Items[i]
		name := m.Spec.RecordedState.VMName
		if joined := nodeNames[m.Name]; joined != "" {
			name = joined
		}
		if name != "" && m.DeletionTimestamp.IsZero() {
			known[name] = identityOf(m, name)
		}
	}
	return known, nil
}

// identityOf returns the names and addresses of a machine according to VCD. It ignores those that the Node reports.
func identityOf(m *infrav1.VCDMachine, node string) identity {
	of := identity{names: []string{node}}
	for _, address := range m.Status.Addresses {
		switch address.Type {
		case clusterv1.MachineInternalIP, clusterv1.MachineExternalIP:
			if ip, err := netip.ParseAddr(address.Address); err == nil {
				of.addresses = append(of.addresses, ip.Unmap())
			}
		case clusterv1.MachineHostName, clusterv1.MachineInternalDNS, clusterv1.MachineExternalDNS:
			of.names = append(of.names, address.Address)
		}
	}
	return of
}
