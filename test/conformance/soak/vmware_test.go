// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/vmware/cloud-provider-for-cloud-director/pkg/vcdsdk"
	"k8s.io/klog"
	klogv2 "k8s.io/klog/v2"
)

// TestMain discards the logs of VMware's programs, which use two versions of klog.
func TestMain(m *testing.M) {
	for _, initFlags := range []func(*flag.FlagSet){klog.InitFlags, klogv2.InitFlags} {
		logs := flag.NewFlagSet("logs", flag.ContinueOnError)
		initFlags(logs)
		if err := logs.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"}); err != nil {
			panic(err)
		}
	}
	klog.SetOutput(io.Discard)
	klogv2.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// A vmwareClient is the client that VMware's CAPVCD, cloud provider and CSI driver share.
type vmwareClient struct {
	number int
	rng    *rand.Rand
	site   string
	client *vcdsdk.Client
}

func newVMwareClient(a assignment) vmwareClient {
	return vmwareClient{number: a.number, rng: a.rng, site: a.sim.URL()}
}

// login logs in the first time. Later calls refresh the token, as the programs do for each reconcile.
func (o *vmwareClient) login() (err error) {
	if o.client != nil {
		return o.client.RefreshBearerToken()
	}
	o.client, err = vcdsdk.NewVCDClientFromSecrets(o.site, "acme", "acme-vdc", "acme", "", "", "capvcd-api-token", true, true)
	return err
}

func (o *vmwareClient) logout() error { return o.client.VCDClient.Disconnect() }

// expected reports whether VMware's programs retry after an error. Parts of the client return only the status for a
// busy gateway, so any status 400 is expected here. The test checks the codes of all errors in the responses of the
// simulator.
func (o *vmwareClient) expected(err error) bool {
	return busy(err) ||
		errors.As(err, new(*vcdsdk.GatewayBusyError)) ||
		errors.As(err, new(*vcdsdk.LoadBalancerPoolBusyError)) ||
		errors.As(err, new(*vcdsdk.VirtualServiceBusyError)) ||
		errors.As(err, new(*vcdsdk.VirtualServicePendingError)) ||
		err != nil && (strings.Contains(err.Error(), "400 Bad Request") || strings.Contains(err.Error(), "obtained [400]"))
}
