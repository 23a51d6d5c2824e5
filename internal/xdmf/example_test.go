package xdmf_test

import (
	"fmt"
	"os"

	"github.com/fieldstone-io/fieldstone/internal/xdmf"
)

func ExampleWrite() {
	series := xdmf.Series{Name: "psi", Steps: []xdmf.Step{{
		Name: "step 40", Time: 0.5,
		Size: [3]int{256, 128, 64}, Spacing: [3]float64{0.1, 0.1, 0.2},
		Arrays: []xdmf.Array{{Name: "psi", Path: "psi_0040.bin"}},
	}}}
	if err := xdmf.Write(os.Stdout, series); err != nil {
		fmt.Println(err)
	}
	// Output:
	// <?xml version="1.0" encoding="UTF-8"?>
	// <Xdmf Version="3.0">
	//   <Domain>
	//     <Grid Name="psi" GridType="Collection" CollectionType="Temporal">
	//       <Grid Name="step 40" GridType="Uniform">
	//         <Time Value="0.5"/>
	//         <Topology TopologyType="3DCoRectMesh" Dimensions="64 128 256"/>
	//         <Geometry GeometryType="ORIGIN_DXDYDZ">
	//           <DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">0 0 0</DataItem>
	//           <DataItem Dimensions="3" NumberType="Float" Precision="8" Format="XML">0.2 0.1 0.1</DataItem>
	//         </Geometry>
	//         <Attribute Name="psi" AttributeType="Scalar" Center="Node">
	//           <DataItem Dimensions="64 128 256" NumberType="Float" Precision="8" Format="Binary" Endian="Little" Seek="0">psi_0040.bin</DataItem>
	//         </Attribute>
	//       </Grid>
	//     </Grid>
	//   </Domain>
	// </Xdmf>
}
