// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"

	"github.com/cluster-api-provider-vcd/cluster-api-provider-vcd/cpi/kubevip"
)

func TestKubeVIPServesServicesInsteadOfOrAlongsideVCD(t *testing.T) {
	const ranges = "addressRanges: [{startIP: 192.168.100.210, endIP: 192.168.100.219}]"
	for name, tt := range map[string]struct {
		balancer        string
		byVCD, assigned bool
	}{
		"VCD only":     {"{network: nodes}", true, false},
		"kube-vip":     {"{network: nodes, kubeVIP: {" + ranges + "}}", false, true},
		"both":         {"{network: nodes, kubeVIP: {class: example.com/kube-vip, " + ranges + "}}", true, true},
		"a class only": {"{enabled: false, kubeVIP: {class: example.com/kube-vip, " + ranges + "}}", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			path := filepath.Join(t.TempDir(), "config.yaml")
			config := "clusterid: demo\nvcd: {host: https://vcd.example.com, org: acme, vdc: acme-vdc}\nloadbalancer: " + tt.balancer
			g.Expect(os.WriteFile(path, []byte(config), 0o600)).To(Succeed())
			client := fake.NewClientset()
			core := informers.NewSharedInformerFactory(client, 0).Core().V1()

			vcd := vcdProvider()
			vcd.flags(pflag.NewFlagSet("", pflag.ContinueOnError)) // sets the defaults

			p, err := load(vcd, path, &ourFlags{}, func(string) string { return "" })
			g.Expect(err).NotTo(HaveOccurred())
			b, err := p.configuration.open(host{
				client:    client,
				informers: core,
				nodes:     core.Nodes().Lister(),
				services:  core.Services().Lister(),
				recorder:  record.NewFakeRecorder(1),
				stop:      t.Context().Done(),
			})

			g.Expect(err).NotTo(HaveOccurred())
			t.Cleanup(func() { _ = b.Close(t.Context()) })
			g.Expect(b.Balancer != nil).To(Equal(tt.byVCD))
			isAssigner := false
			for _, part := range b.Parts {
				_, isAssigner = part.(*kubevip.Assigner)
			}
			g.Expect(isAssigner).To(Equal(tt.assigned))
		})
	}
}
