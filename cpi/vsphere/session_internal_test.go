// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"errors"
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/vmware/govmomi/vim25/soap"
)

func TestTokenServiceResponses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		refused bool
	}{
		{"the certificate belongs to no user", soap.WrapSoapFault(&soap.Fault{Code: "ns0:FailedAuthentication"}), true},
		{"the signature is invalid", soap.WrapSoapFault(&soap.Fault{Code: "wsse:FailedCheck"}), true},
		{"the service fails", soap.WrapSoapFault(&soap.Fault{Code: "ns0:RequestFailed"}), false},
		{"the service does not respond", errors.New("connection refused"), false},
		{"a token is returned", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := tt.err
			if err != nil {
				err = fmt.Errorf("issuing: %w", err)
			}

			NewWithT(t).Expect(tokenRefused(tt.err)).To(Equal(tt.refused), "%v", err)
		})
	}
}
