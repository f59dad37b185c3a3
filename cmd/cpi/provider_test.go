// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	cloudconfig "k8s.io/cloud-provider/app/config"
	"k8s.io/klog/v2"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi"
	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/internal/ccmconfig"
)

// otherConfig is the schema of another cloud.
type otherConfig struct {
	ClusterID string            `json:"clusterID" env:"CLUSTER_ID" required:"write an id"`
	Old       ccmconfig.Ignored `json:"old,omitzero" ignored:"it is small"`
}

// otherProvider implements everything that the program requires of an additional cloud.
func otherProvider() provider {
	return provider{
		name: "other",
		load: func(from source) (*configuration, error) {
			var c otherConfig
			report, err := ccmconfig.Decode(from.file, &c, from.env)
			if err != nil {
				return nil, err
			}
			open := func(host) (*backend, error) { return &backend{Backend: cpi.Backend{Name: "other"}}, nil }
			return &configuration{warnings: report.Warnings, open: open}, report.Err()
		},
	}
}

func TestAnAdditionalCloudIsSelectedByName(t *testing.T) {
	g := NewWithT(t)
	all := append(providers(), otherProvider())

	out, err := runOf(t, all, "old: 1", nil, "--cloud-provider=other", "--validate-config")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(out).To(ContainSubstring("warning: old (line 1) has no effect: it is small"))

	_, err = runOf(t, all, rightConfig, nil, "--cloud-provider=other", "--validate-config")
	g.Expect(err).To(MatchError(And(
		ContainSubstring("vcd (line 2): is not a key"), ContainSubstring("loadbalancer (line 3): is not a key"),
	)))

	_, err = runOf(t, all, "", nil, "--cloud-provider=aws")
	g.Expect(err).To(MatchError(ContainSubstring(`is "aws", but must be vmware-cloud-director or vsphere or external-cloudstack or other`)))
}

// loaded returns the program with an additional cloud, after it has read its configuration.
func loaded(t *testing.T) *program {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	g.Expect(os.WriteFile(path, []byte("clusterID: c1"), 0o600)).To(Succeed())
	chosen, err := find([]provider{vcdProvider(), otherProvider()}, "other")
	g.Expect(err).NotTo(HaveOccurred())
	p, err := load(chosen, path, &ourFlags{namespace: "kube-system"}, fromEnv)
	g.Expect(err).NotTo(HaveOccurred())
	return p
}

func TestAnAdditionalCloudIsServed(t *testing.T) {
	g := NewWithT(t)
	client := kubernetes.NewForConfigOrDie(&rest.Config{})
	exit := klog.OsExit
	t.Cleanup(func() { klog.OsExit = exit })
	config := &cloudconfig.Config{
		Client:          client,
		SharedInformers: informers.NewSharedInformerFactory(client, 0),
		EventRecorder:   record.NewFakeRecorder(1),
	}
	p := loaded(t)

	cloud, err := p.cloud(config.Complete(), t.Context().Done())

	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(cloud.ProviderName()).To(Equal("other"))
	_, balances := cloud.LoadBalancer()
	_, routes := cloud.Routes()
	g.Expect([]bool{balances, routes}).To(Equal([]bool{false, false}))
	g.Expect(p.close()).To(Succeed())
}
